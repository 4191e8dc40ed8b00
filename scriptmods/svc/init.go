package svc

import (
	"context"
	"fmt"
	"net/netip"
	"sync"

	"example.com/svc/httpapi"
	"example.com/svc/mta/journal"
	"example.com/svc/mta/server"
	"example.com/svc/mta/smtpd"
	"example.com/svc/script"
	"example.com/svc/spool"
)

// initFuncs put the configuration of the server together.
func (m *module) initFuncs() []script.Func {
	return []script.Func{
		script.Fn("start_esmtp_listener", "Adds an SMTP listener; init only.", m.startSMTP, "params"),
		script.Fn("start_http_listener", "Adds a listener for the HTTP API; init only.", m.startHTTP, "params"),
		script.Fn("define_spool", "Defines the spool data or meta; init only.", m.defineSpool, "params"),
		script.Fn("configure_local_logs", "Adds a logger that writes records to files; init only.", m.addLogs, "params"),
	}
}

func (m *module) startSMTP(ctx context.Context, c smtpd.Config) error {
	c.Source = place(ctx)
	add := func() error { return m.b.AddSMTP(c) }
	addr, err := netip.ParseAddrPort(c.Listen)
	if err != nil {
		return fmt.Errorf("start_esmtp_listener: %w", err)
	}
	return m.inInit("start_esmtp_listener", listenerKey(addr), c.Source, add)
}

func (m *module) startHTTP(ctx context.Context, c httpapi.Config) error {
	c.Source = place(ctx)
	return m.inInit("start_http_listener", listenerKey(c.Listen.AddrPort), c.Source, func() error { return m.b.AddHTTP(c) })
}

func (m *module) defineSpool(ctx context.Context, c spool.Config) error {
	if c.Name != server.MetaSpool && c.Name != server.DataSpool {
		return fmt.Errorf("define_spool: unknown spool %q: the names are %q and %q", c.Name, server.DataSpool, server.MetaSpool)
	}
	return m.inInit("define_spool", "spool "+c.Name, place(ctx), func() error { return m.b.AddSpool(c) })
}

func (m *module) addLogs(c journal.Config) error {
	return m.inInit("configure_local_logs", "", "", func() error { return m.b.AddLogs(c) })
}

// inInit runs add, unless this is not init (SV1) or what key names was declared before. An empty key is never taken.
func (m *module) inInit(fn, key, where string, add func() error) error {
	loaded := false
	err := m.b.Edit(func(c *server.Config) {
		// A policy that is being loaded has its handlers not on the bus yet.
		loaded = server.OnInit.Handled(c.Bus) || server.OnPreInit.Handled(c.Bus)
	})
	if err == nil && !loaded {
		err = server.ErrNotInit
	}
	if err != nil {
		return fmt.Errorf("%s: %w", fn, err)
	}
	if err := m.places.take(key, where); err != nil {
		return fmt.Errorf("%s: %w", fn, err)
	}
	if err := add(); err != nil {
		return fmt.Errorf("%s: %w", fn, err)
	}
	return nil
}

// listenerKey names an address that can be bound once, "" for a port that the system chooses.
func listenerKey(a netip.AddrPort) string {
	if a.Port() == 0 {
		return ""
	}
	return "a listener on " + a.String()
}

// places remembers where things were declared that may be declared once. mu guards seen.
type places struct {
	mu   sync.Mutex
	seen map[string]string
}

func (p *places) take(key, where string) error {
	if key == "" {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first, ok := p.seen[key]; ok {
		if first != "" {
			first = " at " + first
		}
		return fmt.Errorf("%s was declared already%s", key, first)
	}
	if p.seen == nil {
		p.seen = make(map[string]string)
	}
	p.seen[key] = where
	return nil
}
