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
	c.Source = script.Place(ctx)
	add := func() error { return m.b.AddSMTP(c) }
	addr, err := netip.ParseAddrPort(c.Listen)
	if err != nil {
		return fmt.Errorf("start_esmtp_listener: %w", err)
	}
	return m.inInit(ctx, "start_esmtp_listener", listenerKey(addr), c.Source, add)
}

func (m *module) startHTTP(ctx context.Context, c httpapi.Config) error {
	c.Source = script.Place(ctx)
	add := func() error { return m.b.AddHTTP(c) }
	return m.inInit(ctx, "start_http_listener", listenerKey(c.Listen.AddrPort), c.Source, add)
}

func (m *module) defineSpool(ctx context.Context, c spool.Config) error {
	if c.Name != server.MetaSpool && c.Name != server.DataSpool {
		return fmt.Errorf("define_spool: unknown spool %q: the names are %q and %q", c.Name, server.DataSpool, server.MetaSpool)
	}
	return m.inInit(ctx, "define_spool", "spool "+c.Name, script.Place(ctx), func() error { return m.b.AddSpool(c) })
}

func (m *module) addLogs(ctx context.Context, c journal.Config) error {
	return m.inInit(ctx, "configure_local_logs", "", "", func() error { return m.b.AddLogs(c) })
}

// inInit runs add, unless this is not init (SV1) or what key names was declared before. An empty key is never taken.
func (m *module) inInit(ctx context.Context, fn, key, where string, add func() error) error {
	if script.Loading(ctx) {
		return fmt.Errorf("%s: %w: call it from the handler of init", fn, server.ErrNotInit)
	}
	if err := m.b.Edit(func(*server.Config) {}); err != nil {
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
