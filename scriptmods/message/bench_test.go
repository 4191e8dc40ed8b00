package message_test

import (
	"errors"
	"log/slog"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/script"
	"example.com/svc/scriptmods/message"
)

// BenchmarkReceived is what a policy does with each message: a header becomes metadata.
func BenchmarkReceived(b *testing.B) {
	for _, tc := range []struct{ name, body string }{
		{"empty", ``},
		{"tenant", `local t = m:get_first_named_header_value('X-Tenant') if t then m:set_meta('tenant', t) end`},
		{"queue", `return m:recipient().domain .. m:queue_name()`},
	} {
		b.Run(tc.name, func(b *testing.B) {
			bus := new(event.Local)
			e, err := script.New(script.Config{Bus: bus, Log: slog.New(slog.DiscardHandler),
				Source:  []byte("require 'svc'.on('bench', function(m)\n" + tc.body + "\nend)"),
				Modules: []script.Module{{Name: "svc", Types: message.Types()}}})
			if err != nil {
				b.Fatal(err)
			}
			if err := e.Load(b.Context()); err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			m := newStore().New(mta.Envelope{Recipients: []mta.Address{{Local: "u", Domain: "to.example"}}}, []byte(content))
			handler := bus.Handlers("bench")[0]
			b.ReportAllocs()
			for b.Loop() {
				if _, err := handler.Call(b.Context(), m); err != nil && !errors.Is(err, event.Pass) {
					b.Fatal(err)
				}
			}
		})
	}
}
