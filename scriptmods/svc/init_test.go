package svc_test

import (
	"errors"
	"testing"

	"example.com/svc/mta/server"
)

const full = `svc.on('init', function()
  svc.define_spool { name = 'data', kind = 'memory' }
  svc.define_spool { name = 'meta', kind = 'memory' }
  svc.configure_local_logs { log_dir = '/nonexistent/logs' }
  svc.configure_local_logs { log_dir = '/nonexistent/other' }
  svc.start_esmtp_listener { listen = '127.0.0.1:0', hostname = 'one.test' }
  svc.start_esmtp_listener { listen = '127.0.0.1:0', meta = { x_port = 'two' } }
  svc.start_http_listener { listen = '127.0.0.1:0', trusted_hosts = {} }
end)`

func TestInit(t *testing.T) {
	f := load(t, full)
	if err := server.Prepare(t.Context(), f.bus); err != nil {
		t.Fatal(err)
	}
	var c server.Config
	if err := f.b.Edit(func(cfg *server.Config) { c = *cfg }); err != nil {
		t.Fatal(err)
	}
	if len(c.Spools) != 2 || c.Spools[0].Name != "data" || c.Spools[1].Kind != "memory" {
		t.Errorf("spools %+v", c.Spools)
	}
	if len(c.Logs) != 2 || c.Logs[1].LogDir != "/nonexistent/other" || c.Logs[0].BackPressure != 128000 {
		t.Errorf("logs %+v", c.Logs)
	}
	if len(c.SMTP) != 2 || c.SMTP[0].Hostname != "one.test" || c.SMTP[1].Meta["x_port"] != "two" {
		t.Errorf("SMTP %+v", c.SMTP)
	}
	if len(c.HTTP) != 1 || c.HTTP[0].Listen.Port() != 0 {
		t.Errorf("HTTP %+v", c.HTTP)
	}
}

// SV1: while the policy is loaded, in a handler, and after Build.
func TestInitOnly(t *testing.T) {
	for _, call := range []string{
		`svc.define_spool { name = 'data', kind = 'memory' }`, `svc.configure_local_logs { log_dir = '/nonexistent' }`,
		`svc.start_esmtp_listener { listen = '127.0.0.1:0' }`, `svc.start_http_listener { listen = '127.0.0.1:0' }`,
	} {
		t.Run(call[:16], func(t *testing.T) {
			f := prepare(t, "svc.on('init', function() end)\n"+call)
			err := f.eng.Load(t.Context())
			wantError(t, err, "policy.lua:2: ", ": call it from the handler of init")
			if !errors.Is(err, server.ErrNotInit) {
				t.Errorf("the cause of %v is not ErrNotInit", err)
			}
			f = prepare(t, call) // without a handler of init too
			wantError(t, f.eng.Load(t.Context()), "policy.lua:1: ", "call it from the handler of init")
			f = load(t, handler(call)+"svc.on('init', function() end)")
			if _, err := f.b.Build(); err != nil {
				t.Fatal(err)
			}
			if err := f.call(t); !errors.Is(err, server.ErrNotInit) {
				t.Errorf("after Build: %v", err)
			}
		})
	}
}

func TestInitErrors(t *testing.T) {
	for _, tc := range []struct {
		body string
		want []string
	}{
		{`svc.define_spool { name = 'other', kind = 'memory' }`, []string{"policy.lua:2", `"other"`, `"data"`}},
		{"svc.define_spool { name = 'data', kind = 'memory' }\nsvc.define_spool { name = 'data', kind = 'memory' }",
			[]string{"policy.lua:3", "declared already"}},
		{`svc.define_spool { nme = 'data' }`, []string{"policy.lua:2", "nme", "name"}},
		{`svc.start_esmtp_listener { listen = 'here' }`, []string{"policy.lua:2", "listen"}},
		{`svc.start_esmtp_listener { relay_host = {} }`, []string{"policy.lua:2", "relay_hosts"}},
		{`svc.start_esmtp_listener { peer = {} }`, []string{"policy.lua:2", "not served yet"}},
		{"svc.start_esmtp_listener { listen = '127.0.0.1:25' }\nsvc.start_http_listener { listen = '127.0.0.1:25' }",
			[]string{"policy.lua:3", "127.0.0.1:25", "declared already"}},
		{`svc.start_http_listener { use_tls = true }`, []string{"policy.lua:2", "not served yet"}},
		{`svc.configure_local_logs {}`, []string{"policy.lua:2", "log_dir"}},
	} {
		t.Run(tc.body, func(t *testing.T) {
			f := load(t, "svc.on('init', function()\n"+tc.body+"\nend)")
			wantError(t, server.Prepare(t.Context(), f.bus), tc.want...)
		})
	}
}
