package script

import (
	"errors"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
)

func TestRejections(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       mta.Rejection
	}{
		{"direct", "svc.reject(550, '5.1.1 no')", mta.Rejection{Code: 550, Text: "5.1.1 no"}},
		{"disconnect", "svc.disconnect(451, 'x')", mta.Rejection{Code: 451, Text: "x", Mode: mta.ForceDisconnect}},
		{"mode", "svc.disconnect(451, 'x', 'FollowWith421')", mta.Rejection{Code: 451, Text: "x", Mode: mta.FollowWith421}},
		{"through pcall and error", "local ok, e = pcall(svc.reject, 421, 'later') error(e)", mta.Rejection{Code: 421, Text: "later"}},
		{"twice", "local _, e = pcall(svc.reject, 421, 'later') _, e = pcall(error, e) error(e, 0)", mta.Rejection{Code: 421, Text: "later"}},
		{"through assert", "assert(pcall(svc.reject, 550, 'a'))", mta.Rejection{Code: 550, Text: "a"}},
		{"through xpcall", "local _, e = xpcall(svc.reject, function(e) return e end, 550, 'b') error(e)", mta.Rejection{Code: 550, Text: "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := load(t, "local svc = require 'svc'\nsvc.on('test_none', function() "+c.body+" end)")
			_, handled, err := onNothing.Call(t.Context(), f.bus, event.None{})
			var r *mta.Rejection
			if !errors.As(err, &r) || *r != c.want || !handled {
				t.Errorf("got %v %v", handled, err)
			}
		})
	}
	t.Run("text of a caught rejection", func(t *testing.T) {
		v, err := eval(t, "local ok, e = pcall(svc.reject, 550, 'no') return tostring(ok) .. tostring(e) .. type(e)")
		if err != nil || v != "false550 nouserdata" {
			t.Error(v, err)
		}
	})
	t.Run("wrong arguments are no rejection", func(t *testing.T) {
		for _, body := range []string{"svc.reject(200, 'x')", "svc.reject('550', 'x')", "svc.reject(550)", "svc.disconnect(550, 'x', 'Hard')"} {
			_, err := eval(t, body)
			var r *mta.Rejection
			if err == nil || errors.As(err, &r) {
				t.Error(body, err)
			}
			wantText(t, err, "policy.lua:3: ")
		}
	})
}
