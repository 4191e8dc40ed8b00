package script

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta"
)

func TestLuaErrors(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"error with a table", "local ok, e = pcall(error, {code=1}) return e.code", "1"},
		{"error with nil", "local ok, e = pcall(error) return tostring(ok) .. tostring(e)", "falsenil"},
		{"error adds the place", "local ok, e = pcall(function() error('x') end) return e", "policy.lua:3: x"},
		{"level 2", "local function g() error('x', 2) end\nlocal ok, e = pcall(function()\ng() end) return e", "policy.lua:5: x"},
		{"level 0", "local ok, e = pcall(function() error('x', 0) end) return e", "x"},
		{"VM error", "local ok, e = pcall(function() local t; return t.x end) return e", "policy.lua:3: attempt to index local 't' (a nil value)"},
		{"xpcall with a VM error", "local ok, e = xpcall(function() local t; return t.x end, function(m) return 'H:' .. m end) return e", "H:policy.lua:3: attempt to index local 't' (a nil value)"},
		{"xpcall passes arguments and results", "return table.concat({xpcall(function(a, b) return a + b end, print, 1, 2)} , ',', 2)", "3"},
		{"error in the handler", "local ok, e = xpcall(error, function() error 'y' end, 'x') return tostring(ok) .. e", "falseerror in error handling"},
		{"nested pcall", "local ok, e = pcall(function() local ok, e = pcall(error, 'a') error(e .. 'b', 0) end) return e", "ab"},
		{"assert keeps the value", "local t = {} local ok, e = pcall(assert, false, t) return tostring(e == t)", "true"},
		{"assert message", "local ok, e = pcall(assert, nil) return e", "assertion failed!"},
		{"assert returns all", "return select(2, assert(1, 'two'))", "two"},
		{"pcall results", "local _, a, b = pcall(function() return 1, 'b' end) return a .. b", "1b"},
		{"tostring", "return table.concat({tostring(1), tostring(1.5), tostring(1/0), tostring(-1/0), tostring(2^53), tostring(nil), tostring(true)}, ' ')", "1 1.5 inf -inf 9.007199254741e+15 nil true"},
		{"__tostring", "return tostring(setmetatable({}, {__tostring = function() return 'T' end}))", "T"},
		{"stack overflow", "local function f() return 1 + f() end local ok, e = pcall(f) return tostring(ok) .. tostring(e):match('stack overflow')", "falsestack overflow"},
		{"deep pcall", "local function f(n) return pcall(f, n + 1) end return tostring((f(1)))", "true"},
		{"load", "return load('return 1 + 1')()", "2"},
		{"load syntax error", "local f, e = load('return +', '=x') return tostring(f) .. e", "nilx:1: unexpected symbol near +"},
		{"load env", "return load('return y', 'n', 't', {y = 'Y'})()", "Y"},
		{"load binary", "local f, e = load('\\27Lua') return e", "attempt to load a binary chunk"},
		{"select negative", "return select(-1, 'a', 'b')", "b"},
		{"missing library", "local ok, e = pcall(coroutine.create, print) return e", "coroutine.create is not served yet"},
		{"no exit", "return tostring(os.exit) .. tostring(os.execute) .. tostring(io.popen)", "nilnilnil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := eval(t, "return tostring((function() "+c.body+" end)())")
			if err != nil || v != c.want {
				t.Errorf("got %v, %v; want %s", v, err, c.want)
			}
		})
	}
}

func TestErrorValue(t *testing.T) {
	_, err := eval(t, "error({code = 7})")
	var e *Error
	if !errors.As(err, &e) || e.Place != "policy.lua:3" || e.Event != "main" {
		t.Fatalf("%#v", err)
	}
	if m, ok := e.Value.(map[string]any); !ok || m["code"] != int64(7) {
		t.Errorf("value %#v", e.Value)
	}
	wantText(t, err, "policy.lua:3: table: ")
}

func TestGoErrors(t *testing.T) {
	mod := Module{Name: "m", Funcs: []Func{
		Fn("fail", "", func() error { return fs.ErrNotExist }),
		Fn("panics", "", func() error { panic("boom") }),
		Fn("nilmap", "", func(m map[string]any) { m["x"].(map[string]any)["y"] = 1 }),
		Fn("reject", "", func() error { return errors.Join(errors.New("x"), mta.Reject(450, "later")) }),
		Fn("sub", "", func(ctx context.Context, cb *Callback) error { _, err := cb.Call(ctx); return err }),
	}}
	with := func(c *Config) { c.Modules = append(c.Modules, mod) }
	t.Run("cause survives", func(t *testing.T) {
		_, err := eval(t, "require('m').fail()", with)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		if err.Error() != "policy.lua:3: file does not exist" {
			t.Error(err)
		}
	})
	t.Run("cause survives being raised again", func(t *testing.T) {
		_, err := eval(t, "local ok, e = pcall(require('m').fail) error('again: ' .. e)", with)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("cause survives a callback", func(t *testing.T) {
		_, err := eval(t, "require('m').sub(function()\nrequire('m').fail() end)", with)
		if !errors.Is(err, fs.ErrNotExist) || err.Error() != "policy.lua:4: file does not exist" {
			t.Error(err)
		}
	})
	t.Run("joined rejection", func(t *testing.T) {
		_, err := eval(t, "require('m').reject()", with)
		var r *mta.Rejection
		if !errors.As(err, &r) || r.Code != 450 {
			t.Error(err)
		}
	})
	for _, fn := range []string{"panics", "nilmap"} {
		t.Run("LU4 "+fn, func(t *testing.T) {
			var log bytes.Buffer
			f := load(t, "require('svc').on('main', function() pcall(require('m')."+fn+", {}) end)", with)
			_, err := f.Call(t.Context(), "main")
			wantText(t, err, "policy.lua:1: panic in a bound function")
			log.Write(f.log.Bytes())
			if !strings.Contains(log.String(), "errors_test.go") {
				t.Errorf("no stack in the log: %s", log.String())
			}
		})
	}
}

func TestBudget(t *testing.T) {
	loops := []string{
		"while true do end",
		"while true do pcall(function() while true do end end) end",
		"while true do xpcall(error, function() while true do end end) end",
		"local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) while true do pcall(function() return t[1] end) end",
		"repeat until ('x'):rep(1000):find(('.-'):rep(20) .. 'y') == 1",
	}
	for _, body := range loops {
		t.Run("LU5 time "+body, func(t *testing.T) {
			f := load(t, "require('svc').on('main', function() "+body+" end)",
				func(c *Config) { c.CallTimeout = 30 * time.Millisecond })
			_, err := f.Call(t.Context(), "main")
			if !errors.Is(err, ErrBudget) && !strings.Contains(err.Error(), "too complex") {
				t.Error(err)
			}
			wantText(t, err, "policy.lua:1: ")
		})
	}
	t.Run("LU5 instructions", func(t *testing.T) {
		_, err := eval(t, "while true do end", func(c *Config) { c.InstructionBudget = 100_000 })
		if !errors.Is(err, ErrBudget) {
			t.Error(err)
		}
		wantText(t, err, "instructions")
	})
	t.Run("LU5 cancelled context", func(t *testing.T) {
		f := load(t, "require('svc').on('main', function() while true do end end)")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := f.Call(ctx, "main")
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("LU5 while loading", func(t *testing.T) {
		f := newFixture(t, "while true do end", func(c *Config) { c.CallTimeout = 30 * time.Millisecond })
		if err := f.Load(t.Context()); !errors.Is(err, ErrBudget) {
			t.Error(err)
		}
	})
	t.Run("waiting in Go does not count", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			mod := Module{Name: "m", Funcs: []Func{Fn("wait", "", func(ctx context.Context) { time.Sleep(time.Hour) })}}
			f := load(t, "require('svc').on('main', function() require('m').wait() for i = 1, 1e5 do end return 1 end)",
				func(c *Config) { c.Modules = append(c.Modules, mod) })
			if _, err := f.Call(t.Context(), "main"); err != nil {
				t.Error(err)
			}
		})
	})
}

func TestLoadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		policy string
		want   []string
		place  string
	}{
		"syntax":  {"local x = 1\nlocal y = = 2\n", []string{"policy.lua:2: ", "unexpected symbol"}, "policy.lua:2"},
		"runtime": {"local function f()\n local x = nil + 1\nend\nf()", []string{"policy.lua:2: attempt to perform arithmetic"}, "policy.lua:2"},
		"module":  {"require 'nothing.here'", []string{"policy.lua:1: module 'nothing.here' not found"}, "policy.lua:1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, c.policy)
			err := f.Load(t.Context())
			wantText(t, err, c.want...)
			var e *Error
			if !errors.As(err, &e) || e.Place != c.place {
				t.Errorf("%#v", err)
			}
			if name == "runtime" && !strings.Contains(e.Stack, "policy.lua:2: in function <policy.lua:1>\npolicy.lua:4: in main chunk") {
				t.Errorf("stack %q", e.Stack)
			}
			if len(f.bus.Names()) != 0 {
				t.Error("handlers were left", f.bus.Names())
			}
		})
	}
}
