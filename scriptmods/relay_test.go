package scriptmods_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"example.com/svc/egress"
	"example.com/svc/mta"
	"example.com/svc/mta/dns"
	"example.com/svc/mta/event"
	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/queue"
	"example.com/svc/script"
	"example.com/svc/scriptmods"
	"example.com/svc/spool/kinds"
	"example.com/svc/spool/memory"
)

// relay is the example policy, loaded and prepared.
type relay struct {
	bus *event.Local
	b   *server.Builder
}

func loadRelay(t *testing.T) relay {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	none, err := dns.NewZones(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := relay{bus: new(event.Local)}
	r.b = server.NewBuilder(server.Config{Bus: r.bus, Resolver: none, OpenSpool: kinds.Open, Log: quiet})
	eng, err := script.New(script.Config{Path: filepath.FromSlash("../examples/relay/init.lua"), Bus: r.bus, Log: quiet,
		Modules: scriptmods.All(r.b, scriptmods.Options{Log: quiet})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(eng.Close)
	if err := eng.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Prepare(t.Context(), r.bus); err != nil {
		t.Fatal(err)
	}
	return r
}

// The example starts: here with its files in a folder of the test and on free ports.
func TestRelayStarts(t *testing.T) {
	r := loadRelay(t)
	dir := t.TempDir()
	err := r.b.Edit(func(c *server.Config) {
		if len(c.SMTP) != 1 || c.SMTP[0].Listen != "127.0.0.1:2525" || len(c.HTTP) != 1 || len(c.Logs) != 1 || len(c.Spools) != 2 {
			t.Fatalf("%+v", c)
		}
		for i := range c.Spools {
			c.Spools[i].Path = filepath.Join(dir, c.Spools[i].Path)
		}
		c.Logs[0].LogDir = filepath.Join(dir, c.Logs[0].LogDir)
		c.SMTP[0].Listen = "127.0.0.1:0"
		c.HTTP[0].Listen = settings.AddrPort{AddrPort: netip.MustParseAddrPort("127.0.0.1:0")}
	})
	if err != nil {
		t.Fatal(err)
	}
	srv, err := r.b.Build()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	select {
	case <-srv.Ready():
	case err := <-done:
		t.Fatalf("did not start: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func session(from string, meta map[string]any) *mta.Session {
	s := &mta.Session{}
	s.Meta.Set(mta.MetaReceivedFrom, from)
	for k, v := range meta {
		s.Meta.Set(k, v)
	}
	return s
}

func TestRelayTenant(t *testing.T) {
	r := loadRelay(t)
	store := mta.NewStore(memory.New(), memory.New(), nil, nil)
	for name, tc := range map[string]struct {
		from, user, header, queue string
		code                      int
	}{
		"trusted with header":    {from: "127.0.0.1:5000", header: "acme", queue: "acme@to.example"},
		"trusted over IPv6":      {from: "[::1]:5000", header: "acme", queue: "acme@to.example"},
		"trusted without header": {from: "127.0.0.1:5000", queue: "to.example"},
		"user beats header":      {from: "192.0.2.1:5000", user: "bob", header: "acme", queue: "bob@to.example"},
		"stranger with header":   {from: "192.0.2.1:5000", header: "acme", queue: "to.example"},
		"bad name":               {from: "127.0.0.1:5000", header: "a@b:c", code: 550},
	} {
		t.Run(name, func(t *testing.T) {
			content := "Subject: x\r\n\r\nbody\r\n"
			if tc.header != "" {
				content = "X-Tenant: " + tc.header + "\r\n" + content
			}
			m := store.New(mta.Envelope{Recipients: []mta.Address{{Local: "u", Domain: "to.example"}}}, []byte(content))
			s := session(tc.from, nil)
			if tc.user != "" {
				s.Meta.Set(mta.MetaAuthnID, tc.user)
			}
			_, _, err := smtpd.OnMessageReceived.Call(t.Context(), r.bus, smtpd.Received{Message: m, Session: s})
			var rej *mta.Rejection
			if tc.code != 0 {
				if !errors.As(err, &rej) || rej.Code != tc.code {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if q, err := m.Queue(t.Context()); err != nil || q.String() != tc.queue {
				t.Errorf("queue %q, %v", q, err)
			}
			if data, _ := m.Data(t.Context()); string(data) != "Subject: x\r\n\r\nbody\r\n" {
				t.Errorf("content %q", data)
			}
		})
	}
}

func TestRelayAnswers(t *testing.T) {
	r, ctx := loadRelay(t), t.Context()
	for domain, want := range map[string]bool{"example.com": true, "other.example": false} {
		d, _, err := smtpd.GetListenerDomain.Call(ctx, r.bus, smtpd.DomainQuestion{Domain: domain, Session: session("192.0.2.1:1", nil)})
		if err != nil || (d != nil && d.RelayTo) != want {
			t.Errorf("%s: %+v, %v", domain, d, err)
		}
	}
	a, _, err := smtpd.OnAuthPlain.Call(ctx, r.bus, smtpd.AuthPlain{Authc: "u", Password: "", Session: session("192.0.2.1:1", nil)})
	if err != nil || a.OK {
		t.Errorf("auth: %+v, %v", a, err)
	}
	for tenant, want := range map[string]string{"newsletter": "bulk", "acme": "main", "": "main"} {
		q, _, err := queue.GetConfig.Call(ctx, r.bus, mta.QueueName{Domain: "d.example", Tenant: tenant})
		if err != nil || q.EgressPool != want || q.MaxAge.D().Hours() != 72 {
			t.Errorf("queue of tenant %q: %+v, %v", tenant, q, err)
		}
		pool, _, err := egress.GetPool.Call(ctx, r.bus, want)
		if err != nil || len(pool.Entries) == 0 {
			t.Fatalf("pool %s: %+v, %v", want, pool, err)
		}
		for _, e := range pool.Entries {
			if s, _, err := egress.GetSource.Call(ctx, r.bus, e.Name); err != nil || s.Name != e.Name || s.EHLODomain == "" {
				t.Errorf("source %s: %+v, %v", e.Name, s, err)
			}
		}
	}
	if _, _, err := egress.GetPool.Call(ctx, r.bus, "nope"); err == nil || !strings.Contains(err.Error(), "there is no pool nope") {
		t.Errorf("unknown pool: %v", err)
	}
	q, _, err := queue.GetConfig.Call(ctx, r.bus, mta.QueueName{Domain: "example.com"})
	if err != nil || q.Protocol.SMTP == nil || len(q.Protocol.SMTP.MXList) != 1 || q.Protocol.SMTP.MXList[0].Name != "mailstore.example.com" {
		t.Errorf("our domain: %+v, %v", q, err)
	}
	p, _, err := egress.GetPathConfig.Call(ctx, r.bus, egress.PathArgs{RoutingDomain: "d", Source: "out-bulk", Site: "s"})
	if err != nil || p.ConnectionLimit.N != 4 || p.MaxMessageRate == nil {
		t.Errorf("path: %+v, %v", p, err)
	}
}
