package message_test

import (
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/smtpd"
	"example.com/svc/script"
)

func TestSession(t *testing.T) {
	s := &mta.Session{ID: "s1"}
	s.Meta.Set("received_from", "192.0.2.1:5")
	s.Auth = mta.Auth{Peer: netip.MustParseAddr("192.0.2.1"), Groups: []string{"g"},
		Identities: []mta.Identity{{Identity: "alice", Context: mta.ContextAuthn}}}
	err := run(t, `eq(m:get_meta('received_from'), '192.0.2.1:5') eq(m:get_meta('x_none'), nil)
		m:set_meta('x_count', 3) eq(m:get_meta('x_count'), 3)
		local a = m:auth_info()
		eq(a.peer_address, '192.0.2.1') list(a.groups, {'g'}) eq(#a.identities, 1)
		eq(a.identities[1].identity, 'alice') eq(a.identities[1].context, 'SmtpAuthPlainAuthentication')`, s)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := s.Meta.Get("x_count"); v != int64(3) {
		t.Errorf("x_count is %T %v", v, v)
	}
	if err := run(t, `local a = m:auth_info() eq(a.peer_address, nil) eq(#a.groups, 0) eq(#a.identities, 0)`,
		new(mta.Session)); err != nil {
		t.Error(err)
	}
	wantError(t, run(t, `m:set_meta('x_f', print)`, s), "policy.lua:9", "x_f")
}

// events.tsv smtp_server_auth_plain: the answer may be an authinfo object. Where its peer is does not matter.
func TestAuthAnswer(t *testing.T) {
	bus := new(event.Local)
	policy(t, bus, `local svc = require 'svc'
svc.on('smtp_server_auth_plain', function(authz, authc, password, conn)
  if password == 'table' then return {identities = {{identity = authc, context = 'x'}}} end
  return conn:auth_info()
end)`)
	s := &mta.Session{}
	s.Auth = mta.Auth{Peer: netip.MustParseAddr("192.0.2.1"), Groups: []string{"g"},
		Identities: []mta.Identity{{Identity: "alice", Context: mta.ContextAuthn}, {Identity: "bob", Context: "x"}}}
	a, _, err := smtpd.OnAuthPlain.Call(t.Context(), bus, smtpd.AuthPlain{Authc: "u", Session: s})
	want := &mta.Auth{Groups: s.Auth.Groups, Identities: s.Auth.Identities}
	if err != nil || !a.OK || !reflect.DeepEqual(a.Info, want) {
		t.Errorf("%+v, %v", a.Info, err)
	}
	a, _, err = smtpd.OnAuthPlain.Call(t.Context(), bus, smtpd.AuthPlain{Authc: "u", Session: new(mta.Session)})
	if err != nil || !a.OK || a.Info.Authenticated() { // smtpd refuses an answer without identities
		t.Errorf("%+v, %v", a.Info, err)
	}
	a, _, err = smtpd.OnAuthPlain.Call(t.Context(), bus, smtpd.AuthPlain{Authc: "u", Password: "table", Session: s})
	if err != nil || a.Info == nil || len(a.Info.Identities) != 1 || a.Info.Identities[0].Identity != "u" {
		t.Errorf("%+v, %v", a, err)
	}
}

// LU2: what a policy keeps is dead after the call.
func TestScoped(t *testing.T) {
	e := engine(t, `if kept then kept:id() end kept = m`)
	m := newMessage(t, newStore(), "a@b.example")
	if _, err := e.Call(t.Context(), "test", m); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Call(t.Context(), "test", m); !errors.Is(err, script.ErrStale) {
		t.Errorf("second call: %v", err)
	}
}
