package script

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
)

type testDuration = settings.Duration

func newMessage() *mta.Message {
	return mta.NewStore(nil, nil, nil, nil).New(mta.Envelope{}, []byte("hi\r\n"))
}

func TestArguments(t *testing.T) {
	f := load(t, `
local svc = require 'svc'
svc.on('test_config', function(domain, tenant, campaign, routing)
  print(domain, tenant, campaign, routing)
end)
svc.on('test_address', function(...)
  local sender, comment = ...
  print(select('#', ...), sender.domain, tostring(sender), comment)
end)
svc.on('test_none', function(...) print(select('#', ...)) end)
`)
	ctx := t.Context()
	_, handled, err := askConfig.Call(ctx, f.bus, mta.QueueName{Domain: "a.example", Campaign: "c"})
	if err != nil || handled {
		t.Fatal(handled, err)
	}
	if _, _, err := onAddress.Call(ctx, f.bus, addressArgs{Sender: mta.Address{Local: "u", Domain: "b.example"}}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := onNothing.Call(ctx, f.bus, event.None{}); err != nil {
		t.Fatal(err)
	}
	want := "a.example\tnil\tc\tnil\n2\tb.example\tu@b.example\tnil\n0\n"
	if got := f.out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnswers(t *testing.T) {
	ctx := t.Context()
	ask := func(t *testing.T, event, body string) *fixture {
		return load(t, "local svc = require 'svc'\nsvc.on('"+event+"', function(x) "+body+" end)")
	}
	t.Run("CE-5 no value passes", func(t *testing.T) {
		f := ask(t, "test_chain_bool", "")
		if _, handled, err := askChain.Call(ctx, f.bus, ""); handled || err != nil {
			t.Error(handled, err)
		}
	})
	t.Run("CE-5 explicit nil passes in a chain with an answer", func(t *testing.T) {
		f := ask(t, "test_chain_bool", "return nil")
		if _, handled, err := askChain.Call(ctx, f.bus, ""); handled || err != nil {
			t.Error(handled, err)
		}
	})
	t.Run("CE-5 false ends the chain", func(t *testing.T) {
		f := ask(t, "test_chain_bool", "return false")
		if v, handled, err := askChain.Call(ctx, f.bus, ""); v || !handled || err != nil {
			t.Error(v, handled, err)
		}
	})
	t.Run("CE-5 any value ends a chain without an answer", func(t *testing.T) {
		for body, want := range map[string]bool{"": false, "return nil": true, "return 1": true} {
			f := ask(t, "test_none", body)
			if _, handled, err := onNothing.Call(ctx, f.bus, event.None{}); handled != want || err != nil {
				t.Error(body, handled, err)
			}
		}
	})
	t.Run("CE-5 handlers run in order until one answers", func(t *testing.T) {
		f := load(t, `local svc = require 'svc'
svc.on('test_none', function() print(1) end)
svc.on('test_none', function() print(2) return true end)
svc.on('test_none', function() print(3) end)`)
		if _, handled, err := onNothing.Call(ctx, f.bus, event.None{}); !handled || err != nil {
			t.Error(handled, err)
		}
		if got := f.out.String(); got != "1\n2\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("explicit nil is the zero answer of a single event", func(t *testing.T) {
		f := ask(t, "test_bool", "return nil")
		if v, handled, err := askBool.Call(ctx, f.bus, ""); v || !handled || err != nil {
			t.Error(v, handled, err)
		}
	})
	t.Run("string", func(t *testing.T) {
		f := ask(t, "test_text", "return x .. '!'")
		if v, _, err := askText.Call(ctx, f.bus, "a"); v != "a!" || err != nil {
			t.Error(v, err)
		}
	})
	t.Run("lists of objects and texts", func(t *testing.T) {
		f := ask(t, "test_lists", "return {{'a@b.example', 'c@d.example'}, {}}")
		v, _, err := askLists.Call(ctx, f.bus, event.None{})
		if err != nil || len(v) != 2 || len(v[0]) != 2 || v[0][1].Domain != "d.example" || len(v[1]) != 0 {
			t.Error(v, err)
		}
	})
	t.Run("struct takes several results", func(t *testing.T) {
		f := ask(t, "test_two", "return nil, 'text'")
		if v, _, err := askTwo.Call(ctx, f.bus, event.None{}); err != nil || v != (twoResults{0, "text"}) {
			t.Error(v, err)
		}
	})
	t.Run("settings by constructor and by table", func(t *testing.T) {
		for _, body := range []string{
			"return require('svc').make_config{egress_pool='p', max_age='1 day', names={'a'}}",
			"return {egress_pool='p', max_age=86400, names={'a'}}",
		} {
			f := ask(t, "test_config", body)
			v, _, err := askConfig.Call(ctx, f.bus, mta.QueueName{Domain: "x"})
			if err != nil || v.EgressPool != "p" || v.MaxAge.D() != 24*time.Hour || v.Limit != nil || len(v.Names) != 1 {
				t.Error(body, v, err)
			}
		}
	})
	t.Run("a wrong type is an error", func(t *testing.T) {
		f := ask(t, "test_bool", "return 'yes'")
		_, _, err := askBool.Call(ctx, f.bus, "")
		wantText(t, err, "test_bool handler at policy.lua:2", "wrong value", "boolean expected, got string")
	})
}

func TestSettingsObject(t *testing.T) {
	v, err := eval(t, `
local c = svc.make_config{max_age = '2 days', names = {'x', 'y'}}
local keys = {}
for k, v in pairs(c) do keys[#keys+1] = k end
table.sort(keys)
local ok, err = pcall(function() c.max_age = 1 end)
return table.concat(keys, ',') .. '|' .. c.egress_pool .. '|' .. c.max_age .. '|' .. c.names[2] .. '|' ..
  tostring(c.limit) .. '|' .. tostring(ok)`)
	if want := "egress_pool,max_age,names|unspecified|2days|y|nil|false"; err != nil || v != want {
		t.Errorf("got %v, %v; want %s", v, err, want)
	}
}

func TestSettingsFaults(t *testing.T) {
	f := load(t, `local svc = require 'svc'
svc.on('test_config', function()

  return svc.make_config{max_agee = 1, limit = 'x'}
end)`)
	_, _, err := askConfig.Call(t.Context(), f.bus, mta.QueueName{})
	wantText(t, err, "test_config handler at policy.lua:2: policy.lua:4: make_config: ", `"max_agee", did you mean "max_age"?`, `"limit"`)
	var faults settings.Errors
	if !errors.As(err, &faults) || len(faults) != 2 {
		t.Errorf("faults are lost: %#v", err)
	}
	var e *Error
	if !errors.As(err, &e) || e.Place != "policy.lua:4" || !strings.Contains(e.Stack, "policy.lua:4: in function") {
		t.Errorf("place or stack is wrong: %+v", e)
	}
}

func TestRegistration(t *testing.T) {
	try := func(t *testing.T, policy string, edit ...func(*Config)) error {
		return newFixture(t, policy, edit...).Load(t.Context())
	}
	t.Run("CE-6 second handler of a single event names both places", func(t *testing.T) {
		err := try(t, "local svc = require 'svc'\nsvc.on('test_bool', print)\n\nsvc.on('test_bool', print)")
		wantText(t, err, "policy.lua:2", "policy.lua:4", "test_bool")
		var d *event.DuplicateError
		if !errors.As(err, &d) {
			t.Errorf("%#v", err)
		}
	})
	t.Run("CE-6 handler in Go counts", func(t *testing.T) {
		f := newFixture(t, "require('svc').on('test_bool', print)")
		if err := askBool.On(f.bus, func(context.Context, string) (bool, error) { return true, nil }); err != nil {
			t.Fatal(err)
		}
		wantText(t, f.Load(t.Context()), "event_test.go:", "policy.lua:1")
	})
	t.Run("CE-6 svc.on in a handler", func(t *testing.T) {
		_, err := eval(t, "svc.on('test_none', print)")
		wantText(t, err, "policy.lua:3", "not inside a handler")
	})
	t.Run("CE-6 names outside the catalogue", func(t *testing.T) {
		f := load(t, "require('svc').on('my_event', function(a, b) return b end)")
		v, handled, err := event.Dynamic[string, any]("my_event", event.Single).Call(t.Context(), f.bus, "x")
		if v != nil || !handled || err != nil {
			t.Error(v, handled, err)
		}
	})
	t.Run("an undeclared type is an error at registration", func(t *testing.T) {
		wantText(t, try(t, "require('svc').on('test_undeclared', print)"), "policy.lua:1", "test_undeclared", "chan int")
	})
	t.Run("wrong arguments", func(t *testing.T) {
		wantText(t, try(t, "require('svc').on('test_none')"), "policy.lua:1", "function expected, got no value")
		wantText(t, try(t, "require('svc').on(nil, print)"), "string expected, got nil")
	})
	t.Run("registrations that change are an error", func(t *testing.T) {
		n := 0
		mod := Module{Name: "count", Funcs: []Func{Fn("next", "", func() int { n++; return n })}}
		f := load(t, `local n = require('count').next()
require('svc').on('test_' .. (n == 1 and 'none' or 'bool'), function() error 'x' end)`,
			func(c *Config) { c.Modules = append(c.Modules, mod) })
		_, _, err := onNothing.Call(t.Context(), f.bus, event.None{})
		wantText(t, err, "x")
		_, _, err = onNothing.Call(t.Context(), f.bus, event.None{})
		wantText(t, err, "must not depend")
	})
}
