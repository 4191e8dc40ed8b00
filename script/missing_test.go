package script

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var errLater = errors.New("svc.m.later is not served yet")

func withMissing(c *Config) {
	c.Modules = append(c.Modules,
		Module{Name: "svc.m", Funcs: []Func{Fn("country", "", func() string { return "X" })},
			Missing: func(name string) error {
				if name == "later" {
					return errLater
				}
				return nil
			}},
		Module{Name: "svc.kafka", Absent: errors.New("svc.kafka is not served yet")},
		Module{Name: "svc.api.inject", Absent: errors.New("svc.api.inject is not served yet")},
		Module{Name: "redis", Absent: errors.New("redis is not served yet")},
		Module{Name: "svc.m", Absent: errors.New("svc.m is served")})
}

func TestMissing(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"m.later()", "policy.lua:3: attempt to call a nil value: svc.m.later is not served yet"},
		{"m.later{\n1, m.country()\n}", "policy.lua:3: attempt to call a nil value: svc.m.later is not served yet"},
		{"local unset m.contry(unset)", `policy.lua:3: attempt to call a nil value: svc.m has no function "contry", did you mean "country"?`},
		{"return m.zebra()", `attempt to call a nil value: svc.m has no function "zebra"`},
		{"svc.geo.country()", `attempt to index a nil value: svc has no function "geo"`},
		{"svc.kafka.build_client()", "attempt to index a nil value: svc.kafka is not served yet"},
		{"svc.api.inject.inject_v1()", "attempt to index a nil value: svc.api.inject is not served yet"},
		{"local ok, e = pcall(function() m.later() end) error(e, 0)", "policy.lua:3: attempt to call a nil value: svc.m.later is not served yet"},
		{"local ok, e = xpcall(function() m.later() end, function(e) return 'H:' .. e end) error(e, 0)", "H:policy.lua:3: attempt to call a nil value: svc.m.later is not served yet"},
		{"if m.later then end\nlocal t = {} t.later()", "policy.lua:4: attempt to call a nil value"},
		{"for i = 1, 20 do local x = m['x' .. i] end\nm.later()", "svc.m.later is not served yet"},
		{"require 'svc.kafka'", "policy.lua:3: svc.kafka is not served yet"},
		{"require 'redis'", "policy.lua:3: redis is not served yet"},
		{"require 'svc.kafca'", "module 'svc.kafca' not found"},
	} {
		t.Run(c.body, func(t *testing.T) {
			_, err := eval(t, "local m = require 'svc.m' "+c.body, withMissing)
			wantText(t, err, c.want)
			if other := strings.Contains(c.body, "t.later"); other && strings.Contains(err.Error(), "served") {
				t.Errorf("%v is about another nil", err)
			}
		})
	}
	t.Run("cause", func(t *testing.T) {
		if _, err := eval(t, "require('svc.m').later()", withMissing); !errors.Is(err, errLater) {
			t.Error(err)
		}
	})
	t.Run("asking is allowed", func(t *testing.T) {
		v, err := eval(t, `local m = require 'svc.m'
if m.later or svc.kafka or rawget(m, 'later') then return 'there' end
return m.country and m.country()`, withMissing)
		if v != "X" || err != nil {
			t.Error(v, err)
		}
	})
	t.Run("a file of the policy wins", func(t *testing.T) {
		dir := t.TempDir()
		for name, text := range map[string]string{"redis.lua": "return {own = 'mine'}",
			"init.lua": "local r = require 'redis' require('svc').on('main', function() return r.own end)"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		f := load(t, "", withMissing, func(c *Config) { c.Path = filepath.Join(dir, "init.lua") })
		if v, err := f.Call(t.Context(), "main"); err != nil || v[0] != "mine" {
			t.Error(v, err)
		}
	})
	t.Run("absent and declared", func(t *testing.T) {
		f := testModules()[0]
		f.Absent = errLater
		_, err := New(Config{Source: []byte{}, Bus: &plainBus{}, Modules: []Module{f}})
		wantText(t, err, "module svc is absent and declares something")
	})
}
