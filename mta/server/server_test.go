package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

func quiet(c Config) Config {
	c.Log = slog.New(slog.DiscardHandler)
	return c
}

func TestConfigMistakes(t *testing.T) {
	def := func(names ...string) (cs []spool.Config) {
		for _, n := range names {
			cs = append(cs, settings.New(func(c *spool.Config) { c.Name, c.Kind, c.Path = n, spool.KindMemory, "x" }))
		}
		return cs
	}
	open := func(context.Context, spool.Config, *slog.Logger) (spool.Spool, error) { return memory.New(), nil }
	for _, tc := range []struct {
		name, want string
		cfg        Config
	}{
		{"one spool", "both spools", Config{Meta: memory.New()}},
		{"spools twice", "not both", Config{Meta: memory.New(), Data: memory.New(), Spools: def("meta")}},
		{"unknown spool", `unknown spool "mata"`, Config{Spools: def("mata"), OpenSpool: open}},
		{"spool defined twice", "defined twice", Config{Spools: def("meta", "meta"), OpenSpool: open}},
		{"half of the spools", `both "meta" and "data"`, Config{Spools: def("meta"), OpenSpool: open}},
		{"no way to open", "OpenSpool", Config{Spools: def("meta", "data")}},
		{"bad listener", "SMTP[0]", Config{SMTP: []smtpd.Config{settings.New(func(c *smtpd.Config) { c.Listen = "nowhere" })}}},
	} {
		if _, err := New(quiet(tc.cfg)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestBuilder(t *testing.T) {
	b := NewBuilder(quiet(Config{}))
	if _, err := b.Server(); !errors.Is(err, ErrNotRunning) {
		t.Errorf("the server before Build: %v", err)
	}
	if err := b.AddSMTP(settings.New(func(c *smtpd.Config) { c.Listen = "127.0.0.1:0" })); err != nil {
		t.Fatal(err)
	}
	srv, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := b.Build(); again != srv || err != nil {
		t.Errorf("a second Build gave %v, %v", again, err)
	}
	if err := b.AddSMTP(smtpd.Config{}); !errors.Is(err, ErrNotInit) {
		t.Errorf("a listener after Build: %v", err)
	}
	before := srv.Epoch().Current()
	b.Bump()
	if srv.Epoch().Current() != before+1 {
		t.Error("Bump did not reach the epoch of the server")
	}
}

// pre_init handlers all run, before init; an error fails the start (events.tsv).
func TestPrepare(t *testing.T) {
	bus := new(event.Local)
	var order []string
	note := func(name string, err error) func(context.Context, Start) (event.None, error) {
		return func(context.Context, Start) (event.None, error) {
			order = append(order, name)
			return event.None{}, err
		}
	}
	if err := errors.Join(OnInit.On(bus, note("init", nil)), OnPreInit.On(bus, note("a", nil)),
		OnPreInit.On(bus, note("b", event.Pass))); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(t.Context(), bus); err != nil || !slices.Equal(order, []string{"a", "b", "init"}) {
		t.Errorf("%v, %v", order, err)
	}
	boom := errors.New("boom")
	if err := OnPreInit.On(bus, note("c", boom)); err != nil {
		t.Fatal(err)
	}
	if err := Prepare(t.Context(), bus); !errors.Is(err, boom) || !strings.Contains(err.Error(), "server_test.go:") {
		t.Errorf("a failing pre_init: %v", err)
	}
	if err := Prepare(t.Context(), nil); err != nil {
		t.Errorf("without a bus: %v", err)
	}
}

// A listener that cannot bind ends the start: the other is released, nothing serves.
func TestBindFailure(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	srv, err := New(quiet(Config{SMTP: []smtpd.Config{
		settings.New(func(c *smtpd.Config) { c.Listen = "127.0.0.1:0" }),
		settings.New(func(c *smtpd.Config) { c.Listen, c.Source = taken.Addr().String(), "policy.lua:7" }),
	}}))
	if err != nil {
		t.Fatal(err)
	}
	err = srv.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "policy.lua:7") || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Fatalf("Run: %v", err)
	}
	if c, err := net.Dial("tcp", srv.SMTPAddrs()[0].String()); err == nil {
		_ = c.Close()
		t.Error("the other listener is still bound")
	}
	select {
	case <-srv.Ready():
		t.Error("the server says it is ready")
	default:
	}
}

// Before the spools are open mail is refused without counting as denied (flows SM-4).
func TestGateBeforeStart(t *testing.T) {
	srv, err := New(quiet(Config{}))
	if err != nil {
		t.Fatal(err)
	}
	if r := srv.gate(); r == nil || r.Denied || !strings.Contains(r.Reason, "spool startup") {
		t.Errorf("%+v", r)
	}
	if srv.Queued() != 0 {
		t.Error("a server that has not started holds mail")
	}
}
