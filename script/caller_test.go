package script

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/svc/mta"
)

// callerModule tells policies what Go functions find out about them.
func callerModule() Module {
	return Module{Name: "c", Funcs: []Func{
		Fn("place", "", Place),
		Fn("derived", "", func(ctx context.Context) string {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return Place(ctx)
		}),
		Fn("loading", "", Loading),
		Fn("sub", "", func(ctx context.Context, cb *Callback) (any, error) {
			out, err := cb.Call(ctx)
			if err != nil || len(out) == 0 {
				return nil, err
			}
			return out[0], nil
		}),
		Fn("forget", "", func(ctx context.Context, m *mta.Message) { Forget(ctx, m) }),
		Fn("same", "", func(m *mta.Message) *mta.Message { return m }),
	}}
}

func withCaller(c *Config) { c.Modules = append(c.Modules, callerModule()) }

func TestPlace(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"local p = c.place()\nreturn p", "policy.lua:4"},
		{"return c.place()", "policy.lua:4"},
		{"return select(2, pcall(c.place))", "policy.lua:4"},
		{"local function f()\nlocal p = c.place() return p end\nreturn f()", "policy.lua:5"},
		{"local p = c.sub(function()\nlocal p = c.place() return p end) return p", "policy.lua:5"},
		{"local p =\nc.derived() return p", "policy.lua:5"},
		{"local p = load('\\nreturn c.place()', '=other', 't', {c = c})() return p", "other:2"},
	} {
		t.Run(c.body, func(t *testing.T) {
			v, err := eval(t, "local c = require 'c'\n"+c.body, withCaller)
			if err != nil || v != c.want {
				t.Errorf("got %v, %v; want %s", v, err, c.want)
			}
		})
	}
	t.Run("none", func(t *testing.T) {
		var kept context.Context
		mod := Module{Name: "k", Funcs: []Func{Fn("keep", "", func(ctx context.Context) { kept = ctx })}}
		if _, err := eval(t, "require('k').keep()", func(c *Config) { c.Modules = append(c.Modules, mod) }); err != nil {
			t.Fatal(err)
		}
		for _, ctx := range []context.Context{t.Context(), kept} {
			if p := Place(ctx); p != "" || Loading(ctx) {
				t.Errorf("place %q, loading %v", p, Loading(ctx))
			}
		}
		if EngineFrom(t.Context()) != nil || EngineFrom(kept) == nil {
			t.Error("engine")
		}
	})
}

func TestLoading(t *testing.T) {
	f := load(t, `local c, top = require 'c', require 'c'.loading()
require('svc').on('main', function() return top, c.loading() end)`, withCaller, func(c *Config) { c.MaxUses = 1 })
	for range 2 { // the second call is served by a state that was loaded for it
		v, err := f.Call(t.Context(), "main")
		if err != nil || len(v) != 2 || v[0] != true || v[1] != false {
			t.Error(v, err)
		}
	}
}

// M1: what a bound function gave away cannot be reached any more, whatever holds it.
func TestForget(t *testing.T) {
	f := load(t, `local c = require 'c'
require('svc').on('test_pair', function(msg, conn)
  local again, other = c.same(msg), {msg}
  c.forget(msg)
  assert(tostring(conn):find('^connectionmeta: '))
  for _, m in ipairs{msg, again, other[1]} do
    local ok, e = pcall(m.get_meta, m, 'x')
    assert(not ok and e:find('message is no longer valid here', 1, true), e)
  end
  c.forget(msg)
end)`, withCaller)
	_, _, err := onPair.Call(t.Context(), f.bus, pairArgs{newMessage(), &mta.Session{}})
	wantText(t, err, "policy.lua:10: ", "message is no longer valid here")
	if !errors.Is(err, ErrStale) {
		t.Error(err)
	}
	Forget(t.Context(), newMessage()) // outside a policy it does nothing
}
