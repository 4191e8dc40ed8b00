package svc_test

import (
	"strings"
	"testing"

	"example.com/svc/mta/server"
)

// Listeners, errors about what was declared before, and log lines carry the line of the policy.
func TestPlaces(t *testing.T) {
	t.Run("listeners", func(t *testing.T) {
		f := load(t, full)
		if err := server.Prepare(t.Context(), f.bus); err != nil {
			t.Fatal(err)
		}
		var c server.Config
		if err := f.b.Edit(func(cfg *server.Config) { c = *cfg }); err != nil {
			t.Fatal(err)
		}
		if c.SMTP[0].Source != "policy.lua:6" || c.HTTP[0].Source != "policy.lua:8" {
			t.Errorf("sources %q and %q", c.SMTP[0].Source, c.HTTP[0].Source)
		}
	})
	t.Run("declared before", func(t *testing.T) {
		for _, body := range []string{
			"svc.define_spool { name = 'data', kind = 'memory' }\nsvc.define_spool { name = 'data', kind = 'memory' }",
			"svc.start_esmtp_listener { listen = '127.0.0.1:25' }\nsvc.start_http_listener { listen = '127.0.0.1:25' }",
		} {
			f := load(t, "svc.on('init', function()\n"+body+"\nend)")
			wantError(t, server.Prepare(t.Context(), f.bus), "policy.lua:3: ", "declared already at policy.lua:2")
		}
	})
	t.Run("log", func(t *testing.T) {
		f := load(t, handler("svc.log_info('a', 'b')\npcall(svc.log_warn, 'c')"))
		if err := f.call(t); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`level=INFO msg="policy.lua:2: a b" target=lua`, `level=WARN msg="policy.lua:3: c" target=lua`} {
			if !strings.Contains(f.log.String(), want) {
				t.Errorf("no %q in:\n%s", want, f.log)
			}
		}
	})
}
