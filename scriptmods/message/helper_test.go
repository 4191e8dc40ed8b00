package message_test

import (
	"log/slog"
	"strings"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/script"
	"example.com/svc/scriptmods/message"
	"example.com/svc/spool/memory"
)

const content = "Received: from a.example\r\n\tby b.example\r\n" +
	"Subject: =?utf-8?q?gr=C3=BC=C3=9Fe?=\r\nX-Tenant: acme\r\nX-Mixed-Case: one\r\nx-mixed-case: two\r\n\r\nbody\r\n"

// prelude gives policies of tests a way to say what they expect. Failures carry the line.
const prelude = `function eq(got, want)
  if got ~= want then error('got ' .. tostring(got) .. ', want ' .. tostring(want), 2) end
end
function list(got, want)
  eq(#got, #want)
  for i, v in ipairs(want) do if tostring(got[i]) ~= v then error('[' .. i .. '] is ' .. tostring(got[i]), 2) end end
end
`

func newStore() *mta.Store {
	return mta.NewStore(memory.New(), memory.New(), nil, slog.New(slog.DiscardHandler))
}

func addr(t *testing.T, s string) mta.Address {
	t.Helper()
	a, err := mta.ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newMessage(t *testing.T, s *mta.Store, rcpts ...string) *mta.Message {
	t.Helper()
	env := mta.Envelope{Sender: addr(t, "sender@from.example")}
	for _, r := range rcpts {
		env.Recipients = append(env.Recipients, addr(t, r))
	}
	return s.New(env, []byte(content))
}

// engine loads a policy whose body is the handler "test" with the arguments m and c.
func engine(t *testing.T, body string) *script.Engine {
	t.Helper()
	return policy(t, new(event.Local), prelude+"require 'svc'.on('test', function(m, c)\n"+body+"\nend)")
}

// policy loads a policy onto a bus.
func policy(t *testing.T, bus *event.Local, text string) *script.Engine {
	t.Helper()
	e, err := script.New(script.Config{
		Source:  []byte(text),
		Modules: []script.Module{{Name: "svc", Types: message.Types()}},
		Bus:     bus, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func run(t *testing.T, body string, args ...any) error {
	t.Helper()
	_, err := engine(t, body).Call(t.Context(), "test", args...)
	return err
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error %q does not say %q", err, p)
		}
	}
}
