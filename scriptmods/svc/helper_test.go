package svc_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"example.com/svc/mta/dns"
	"example.com/svc/mta/event"
	"example.com/svc/mta/server"
	"example.com/svc/script"
	"example.com/svc/scriptmods"
	"example.com/svc/scriptmods/svc"
)

// prelude gives policies of tests a way to say what they expect, on one line.
const prelude = `svc = require 'svc' function eq(got, want) if got ~= want then ` +
	`error('got ' .. tostring(got) .. ', want ' .. tostring(want), 2) end end `

// fixture is a policy over a builder.
type fixture struct {
	bus *event.Local
	b   *server.Builder
	eng *script.Engine
	log *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// prepare makes an engine that has not loaded its policy yet.
func prepare(t testing.TB, policy string) *fixture {
	t.Helper()
	none, err := dns.NewZones(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{bus: new(event.Local), log: new(lockedBuffer)}
	log := slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	f.b = server.NewBuilder(server.Config{Bus: f.bus, Resolver: none, Hostname: "mx.test", Log: slog.New(slog.DiscardHandler)})
	f.eng, err = script.New(script.Config{Source: []byte(prelude + policy), Bus: f.bus, Log: slog.New(slog.DiscardHandler),
		Modules: scriptmods.All(f.b, svc.Options{Log: log, Version: "2026.01.01-test", Parallelism: 3})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.eng.Close)
	return f
}

// load makes an engine and loads the policy, which begins on line 1.
func load(t testing.TB, policy string) *fixture {
	t.Helper()
	f := prepare(t, policy)
	if err := f.eng.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// call runs the handler "test".
func (f *fixture) call(t *testing.T, args ...any) error {
	t.Helper()
	_, err := f.eng.Call(t.Context(), "test", args...)
	return err
}

// run runs body as the handler "test"; it begins on line 2.
func run(t *testing.T, body string, args ...any) error {
	t.Helper()
	return load(t, handler(body)).call(t, args...)
}

func handler(body string) string { return "svc.on('test', function(a, b)\n" + body + "\nend)" }

// start builds and runs the server and waits until it is ready. The server ends with the test.
func (f *fixture) start(t *testing.T) *server.Server {
	t.Helper()
	srv, err := f.b.Build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server: %v", err)
		}
	})
	select {
	case <-srv.Ready():
	case err := <-done:
		done <- nil
		t.Fatalf("server did not start: %v", err)
	}
	return srv
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
