package script

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
)

func gauge(f *fixture, name string) float64 {
	return f.metrics.Gauge(name, "").With().Value()
}

func loads(f *fixture) uint64 { return f.metrics.Counter("lua_load_count", "").With().Value() }

const counting = `local svc = require 'svc'
n = 0
svc.on('test_text', function(x)
  n = n + 1
  if x == 'fail' then error('failed') end
  return tostring(n)
end)`

func ask(t *testing.T, f *fixture, arg, want string) {
	t.Helper()
	got, _, err := askText.Call(t.Context(), f.bus, arg)
	if err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestPool(t *testing.T) {
	t.Run("CE-4 a state is used again", func(t *testing.T) {
		f := load(t, counting)
		ask(t, f, "", "1")
		ask(t, f, "", "2")
		if loads(f) != 1 || gauge(f, "lua_count") != 1 || gauge(f, "lua_spare_count") != 1 {
			t.Error(loads(f), gauge(f, "lua_count"), gauge(f, "lua_spare_count"))
		}
	})
	t.Run("CE-4 a state that saw an error is discarded", func(t *testing.T) {
		f := load(t, counting)
		ask(t, f, "", "1")
		_, _, err := askText.Call(t.Context(), f.bus, "fail")
		wantText(t, err, "policy.lua:5: failed")
		if gauge(f, "lua_count") != 0 {
			t.Error(gauge(f, "lua_count"))
		}
		ask(t, f, "", "1")
		if loads(f) != 2 {
			t.Error(loads(f))
		}
	})
	t.Run("CE-4 uses", func(t *testing.T) {
		f := load(t, counting, func(c *Config) { c.MaxUses = 2 })
		for _, want := range []string{"1", "2", "1", "2", "1"} {
			ask(t, f, "", want)
		}
	})
	t.Run("CE-4 age", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := load(t, counting)
			ask(t, f, "", "1")
			time.Sleep(DefaultMaxAge - time.Second)
			ask(t, f, "", "2")
			time.Sleep(time.Second)
			ask(t, f, "", "1")
			if gauge(f, "lua_count") != 1 || gauge(f, "lua_spare_count") != 1 {
				t.Error(gauge(f, "lua_count"), gauge(f, "lua_spare_count"))
			}
		})
	})
	t.Run("CE-4 spare states are bounded, the last used is taken first", func(t *testing.T) {
		var f *fixture
		nested := 0
		mod := Module{Name: "m", Funcs: []Func{Fn("again", "", func(ctx context.Context) (string, error) {
			if nested++; nested > 3 {
				return "end", nil
			}
			s, _, err := askText.Call(ctx, f.bus, "")
			return s, err
		})}}
		f = newFixture(t, `local m = require 'm'
require('svc').on('test_text', function() return m.again() .. '.' end)`, func(c *Config) {
			c.MaxSpare = 2
			c.Modules = append(c.Modules, mod)
		})
		if err := f.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask(t, f, "", "end....")
		if gauge(f, "lua_count") != 2 || gauge(f, "lua_spare_count") != 2 || loads(f) != 4 {
			t.Error(gauge(f, "lua_count"), gauge(f, "lua_spare_count"), loads(f))
		}
	})
	t.Run("endless nesting of events is an error", func(t *testing.T) {
		var f *fixture
		mod := Module{Name: "m", Funcs: []Func{Fn("again", "", func(ctx context.Context) (string, error) {
			s, _, err := askText.Call(ctx, f.bus, "")
			return s, err
		})}}
		f = load(t, `require('svc').on('test_text', function() return require('m').again() end)`,
			func(c *Config) { c.Modules = append(c.Modules, mod) })
		_, _, err := askText.Call(t.Context(), f.bus, "")
		wantText(t, err, "nested over")
	})
	t.Run("metrics by event", func(t *testing.T) {
		f := load(t, counting)
		ask(t, f, "", "1")
		ask(t, f, "", "2")
		var b strings.Builder
		if n := f.metrics.Counter("lua_event_started", "", "event").With("test_text").Value(); n != 2 {
			t.Error(n, b.String())
		}
	})
}

func TestConcurrency(t *testing.T) {
	f := load(t, `local svc = require 'svc'
local shared = {}
svc.on('test_text', function(x)
  shared[#shared + 1] = x
  local s = ''
  for i = 1, 200 do s = x .. i end
  return s
end)`)
	var wg sync.WaitGroup
	for _, x := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		wg.Go(func() {
			for range 50 {
				got, _, err := askText.Call(context.Background(), f.bus, x)
				if err != nil || got != x+"200" {
					t.Errorf("got %q, %v", got, err)
				}
			}
		})
	}
	for range 5 {
		if err := f.Load(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
}

func TestReload(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "init.lua")
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("init.lua", "local p = require 'lib.part'\nrequire('svc').on('test_text', function() return p.name end)")
	write("lib/part.lua", "return {name = 'one'}")
	f := newFixture(t, "", func(c *Config) { c.Path = path })
	if err := f.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(t, f, "", "one")
	write("lib/part.lua", "return {name = 'two'}")
	ask(t, f, "", "one")
	if err := f.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ask(t, f, "", "two")
	t.Run("a policy that fails to load changes nothing", func(t *testing.T) {
		write("lib/part.lua", "\nerror('broken')")
		err := f.Load(t.Context())
		wantText(t, err, "lib/part.lua:2: broken")
		ask(t, f, "", "two")
		write("lib/part.lua", "return }")
		wantText(t, f.Load(t.Context()), "init.lua:1: module 'lib.part': lib/part.lua:1:")
		ask(t, f, "", "two")
	})
	t.Run("handlers in Go stay", func(t *testing.T) {
		if err := onNothing.On(f.bus, func(context.Context, event.None) (event.None, error) {
			return event.None{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		write("lib/part.lua", "return {name = 'three'}")
		if err := f.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask(t, f, "", "three")
		if _, handled, _ := onNothing.Call(t.Context(), f.bus, event.None{}); !handled {
			t.Error("lost")
		}
	})
	t.Run("close", func(t *testing.T) {
		f.Close()
		if _, handled, _ := askText.Call(t.Context(), f.bus, ""); handled {
			t.Error("still there")
		}
		if err := f.Load(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if n := gauge(f, "lua_count"); n != 0 {
			t.Error(n)
		}
	})
}

// plainBus is a bus without Replace.
type plainBus struct{ l event.Local }

func (b *plainBus) Register(name string, h event.Handler) error { return b.l.Register(name, h) }
func (b *plainBus) Handlers(name string) []event.Handler        { return b.l.Handlers(name) }

func TestPlainBus(t *testing.T) {
	b := new(plainBus)
	e, err := New(Config{Source: []byte(counting), Modules: testModules(), Bus: b, Metrics: metric.NewSet()})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v, _, err := askText.Call(t.Context(), b, ""); v != "1" || err != nil {
		t.Error(v, err)
	}
	wantText(t, e.Load(t.Context()), "cannot be replaced")
}

func TestScoped(t *testing.T) {
	t.Run("LU2 a message kept in a global", func(t *testing.T) {
		f := load(t, `local svc = require 'svc'
svc.on('test_pair', function(msg, conn)
  if kept then
    print(pcall(kept.get_meta, kept, 'x'))
    print(pcall(keptconn.get_meta, keptconn, 'x'))
    print(tostring(kept), kept == msg)
    kept:get_meta('x')
  end
  kept, keptconn = msg, conn
  msg:set_meta('k', {1, {a = true}})
  print(msg:get_meta('k')[2].a, msg == msg)
end)`)
		args := pairArgs{newMessage(), &mta.Session{}}
		if _, _, err := onPair.Call(t.Context(), f.bus, args); err != nil {
			t.Fatal(err)
		}
		meta, _ := args.Message.Meta(t.Context())
		if v, _ := meta.Get("k"); mta.CheckMetaValue(v) != nil {
			t.Errorf("%#v", v)
		}
		_, _, err := onPair.Call(t.Context(), f.bus, args)
		if !errors.Is(err, ErrStale) {
			t.Error(err)
		}
		wantText(t, err, "policy.lua:7: ", "message is no longer valid here")
		out := f.out.String()
		for _, want := range []string{"true\ttrue\n", "message is no longer valid here", "connectionmeta is no longer valid here", "message (no longer valid)\tfalse"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is not in %q", want, out)
			}
		}
	})
	t.Run("LU2 an idle state keeps no message and no content", func(t *testing.T) {
		f := load(t, `require('svc').on('test_pair', function(msg, conn)
  local function use(m) return m:get_meta('k') end
  use(msg)
end)`)
		m := newMessage()
		ref := weak.Make(m)
		if _, _, err := onPair.Call(t.Context(), f.bus, pairArgs{m, &mta.Session{}}); err != nil {
			t.Fatal(err)
		}
		m = nil
		runtime.GC()
		if ref.Value() != nil {
			t.Error("the message is still reachable")
		}
		if gauge(f, "lua_spare_count") != 1 {
			t.Error("the state was not kept")
		}
	})
	t.Run("LU1 a callback used after its call", func(t *testing.T) {
		var kept *Callback
		var keptCtx context.Context
		mod := Module{Name: "m", Funcs: []Func{
			Fn("keep", "", func(ctx context.Context, cb *Callback) (any, error) {
				kept, keptCtx = cb, ctx
				out, err := cb.Call(ctx, 20, "x")
				if err != nil {
					return nil, err
				}
				return out[0], nil
			}),
		}}
		v, err := eval(t, "return require('m').keep(function(n, s) return s .. n * 2 end)",
			func(c *Config) { c.Modules = append(c.Modules, mod) })
		if v != "x40" || err != nil {
			t.Fatal(v, err)
		}
		for _, ctx := range []context.Context{t.Context(), keptCtx} {
			if _, err := kept.Call(ctx); !errors.Is(err, ErrStale) {
				t.Error(err)
			}
		}
	})
}
