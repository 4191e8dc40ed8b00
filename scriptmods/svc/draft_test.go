package svc_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/server"
	"example.com/svc/script"
)

func TestInject(t *testing.T) {
	f := load(t, handler(`local m = svc.make_message('', 'user@to.example', 'Subject: x\r\n\r\nbody\r\n')
		eq(m:recipient().email, 'user@to.example') eq(m:get_first_named_header_value('Subject'), 'x')
		m:set_due('2099-01-01T00:00:00Z')
		svc.inject_message(m)
		local gone = svc.make_message('a@b.example', 'user@to.example', 'x')
		gone:set_meta('queue', 'null')
		svc.inject_message(gone, false)`))
	srv := f.start(t)
	if err := f.call(t); err != nil {
		t.Fatal(err)
	}
	if n := srv.Queued(); n != 1 {
		t.Errorf("%d messages queued", n)
	}
}

func TestInjectErrors(t *testing.T) {
	for _, tc := range []struct {
		body string
		want []string
	}{
		{`svc.make_message('nobody', 'a@b.example', '')`, []string{"#1 (sender)", "no @"}},
		{`svc.make_message('', '', '')`, []string{"null address"}},
		{`svc.make_message('', {'a@b.example'}, '')`, []string{"#2 (recipient)"}},
		{`svc.make_message('', 'a@b.example')`, []string{"#3 (body)"}},
		{`svc.inject_message(svc.make_message('', 'a@b.example', ''), true)`, []string{"deferred_spool is not served yet"}},
		{`svc.inject_message('text')`, []string{"#1 (msg)", "message expected, got string"}},
	} {
		t.Run(tc.body, func(t *testing.T) {
			f := load(t, handler(tc.body))
			f.start(t)
			wantError(t, f.call(t), append(tc.want, "policy.lua:2")...)
		})
	}
}

// SV2, M1: whatever a policy still holds of a message that it handed in is of no use; one that was refused is.
func TestInjectedIsGone(t *testing.T) {
	f := load(t, handler(`local m = svc.make_message('', 'user@to.example', 'x') m:set_due('2099-01-01T00:00:00Z')
		eq(pcall(svc.inject_message, m, true), false) eq(#m:id(), 32)
		local held = {m}
		svc.inject_message(m)
		for _, f in ipairs{'id', 'get_meta', 'set_meta', 'set_due', 'save', 'set_data'} do
			local ok, err = pcall(held[1][f], held[1], 'x', 'y')
			eq(ok, false) eq(err:match('message is no longer valid here') ~= nil, true)
		end
		held[1]:id()`))
	srv := f.start(t)
	wantError(t, f.call(t), "policy.lua:10: ", "message is no longer valid here")
	if n := srv.Queued(); n != 1 {
		t.Errorf("%d messages queued", n)
	}
}

// SV1: a policy is loaded for each script state, so that mail made by its top level would be made many times.
func TestMessagesWhileLoading(t *testing.T) {
	f := prepare(t, "ok, err = pcall(svc.make_message, '', 'a@b.example', 'x')\n"+handler("return ok, err"))
	if err := f.eng.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.start(t)
	for _, limit := range []int{1, 0} { // a state of before the start, then new ones
		if err := f.eng.SetMaxUses(limit); err != nil {
			t.Fatal(err)
		}
		v, err := f.eng.Call(t.Context(), "test")
		if err != nil || v[0] != false {
			t.Fatal(v, err)
		}
		if text, _ := v[1].(string); !strings.HasPrefix(text, "make_message: "+server.ErrNotRunning.Error()+": call it from a handler") {
			t.Errorf("%q", text)
		}
	}
}

// SV2: twice, and a message that somebody else holds.
func TestInjectOnce(t *testing.T) {
	f := load(t, handler(`if a then svc.inject_message(a) end
		local m = svc.make_message('', 'user@to.example', 'x') m:set_due('2099-01-01T00:00:00Z')
		svc.inject_message(m)
		svc.inject_message(m)`))
	srv := f.start(t)
	if err := f.call(t); !errors.Is(err, script.ErrStale) {
		t.Errorf("twice: %v", err)
	} else {
		wantError(t, err, "policy.lua:5: ", "message is no longer valid here")
	}
	wantError(t, f.call(t, srv.Store().New(mta.Envelope{}, []byte("x"))), "policy.lua:2", "make_message made")
	if n := srv.Queued(); n != 1 {
		t.Errorf("%d messages queued", n)
	}
}

func TestNotRunning(t *testing.T) {
	f := load(t, handler(`svc.make_message('', 'a@b.example', '')`))
	if err := f.call(t); !errors.Is(err, server.ErrNotRunning) {
		t.Errorf("before Build: %v", err)
	}
	if _, err := f.b.Build(); err != nil {
		t.Fatal(err)
	}
	if err := f.call(t); !errors.Is(err, server.ErrNotRunning) {
		t.Errorf("before Run: %v", err)
	}
}

// A message that is made and never handed in is counted only until it is collected.
func TestForgottenDraft(t *testing.T) {
	f := load(t, handler(`svc.make_message('', 'user@to.example', 'x')`))
	srv := f.start(t)
	if err := f.call(t); err != nil {
		t.Fatal(err)
	}
	count := srv.Metrics().Gauge("message_count", "Message objects existing in memory").With()
	if count.Value() != 1 {
		t.Fatalf("%v messages after make_message", count.Value())
	}
	deadline := time.Now().Add(10 * time.Second)
	for count.Value() != 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%v messages are never released", count.Value())
		}
		runtime.GC() // finalizers run some time after
		runtime.Gosched()
	}
}
