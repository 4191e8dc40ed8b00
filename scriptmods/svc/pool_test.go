package svc_test

import (
	"testing"

	"example.com/svc/script"
	"example.com/svc/scriptmods"
)

// counted answers how often its state was called.
const counted = "n = 0 svc.on('count', function() n = n + 1 return n end)\n"

func (f *fixture) count(t *testing.T, want ...int64) {
	t.Helper()
	for _, w := range want {
		v, err := f.eng.Call(t.Context(), "count")
		if err != nil || len(v) != 1 || v[0] != w {
			t.Fatalf("got %v, %v; want %d", v, err, w)
		}
	}
}

// CE-4: the limits hold at once, for the engine that runs the policy.
func TestPoolSetters(t *testing.T) {
	for name, tc := range map[string]struct {
		call string
		want []int64
	}{
		"uses":  {"svc.set_max_lua_context_use_count(2)", []int64{1, 2, 1, 2}},
		"age":   {"svc.set_max_lua_context_age(0)", []int64{1, 1}},
		"spare": {"svc.set_max_spare_lua_contexts(0)", []int64{1, 1}},
		"large": {"svc.set_max_lua_context_use_count(2^53) svc.set_max_spare_lua_contexts(2^53) svc.set_max_lua_context_age(86400)",
			[]int64{2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			f, other := load(t, counted+handler(tc.call)), load(t, counted)
			f.count(t, 1)
			if err := f.call(t); err != nil {
				t.Fatal(err)
			}
			f.count(t, tc.want...)
			other.count(t, 1, 2, 3)
		})
	}
	t.Run("at the top level", func(t *testing.T) {
		load(t, "svc.set_max_lua_context_use_count(1)\n"+counted).count(t, 1, 1, 1)
	})
	for _, name := range []string{"set_max_lua_context_age", "set_max_lua_context_use_count", "set_max_spare_lua_contexts"} {
		wantError(t, run(t, "svc."+name+"(-1)"), "policy.lua:2: "+name+": -1 is negative")
		wantError(t, run(t, "svc."+name+"(1.5)"), "policy.lua:2: ", "no integer representation")
		wantError(t, run(t, "svc."+name+"()"), "policy.lua:2: ", "integer expected")
	}
	wantError(t, run(t, "svc.set_max_lua_context_age(2^60)"), "policy.lua:2: ", "too large")
}

func TestUnserved(t *testing.T) {
	for body, want := range map[string]string{
		`svc.configure_log_hook { name = 'x' }`: "svc.configure_log_hook is not served yet",
		`svc.make_quee_config {}`:               `svc has no function "make_quee_config", did you mean "make_queue_config"?`,
		`svc.zebra()`:                           `svc has no function "zebra"`,
		`svc.kafka.build_producer {}`:           `module "svc.kafka" is not served yet`,
		`svc.api.inject.inject_v1 {}`:           `module "svc.api.inject" is not served yet`,
		`require 'svc.kafka'`:                   `module "svc.kafka" is not served yet`,
		`require 'redis'`:                       `module "redis" is not served yet`,
		`require 'svc.nothing'`:                 `module 'svc.nothing' not found`,
		`if svc.memoize or svc.dkim then eq(1, 2) end error 'fine'`: "fine",
	} {
		t.Run(body, func(t *testing.T) { wantError(t, run(t, body), "policy.lua:2: ", want) })
	}
}

// An embedder brings a module that is not served here.
func TestOwnModule(t *testing.T) {
	f := prepare(t, "")
	mods := append(scriptmods.All(f.b, scriptmods.Options{}),
		script.Module{Name: "svc.kafka", Funcs: []script.Func{script.Fn("hello", "Greets.", func() string { return "hi" })}})
	eng, err := script.New(script.Config{Source: []byte("require('svc').on('test', function() return require('svc.kafka').hello() .. require('svc').kafka.hello() end)"),
		Bus: f.bus, Modules: mods, Group: "own"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(eng.Close)
	if err := eng.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, err := eng.Call(t.Context(), "test"); err != nil || v[0] != "hihi" {
		t.Error(v, err)
	}
}
