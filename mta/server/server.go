package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"

	"github.com/gofrs/uuid/v5"

	"example.com/svc/egress"
	"example.com/svc/egress/route"
	"example.com/svc/egress/smtpc"
	"example.com/svc/httpapi"
	"example.com/svc/mta"
	"example.com/svc/mta/dns"
	"example.com/svc/mta/event"
	"example.com/svc/mta/journal"
	"example.com/svc/mta/limit"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/queue"
	"example.com/svc/spool"
)

// Server is one mail transfer agent. Make one with [New] and call [Server.Run] once.
type Server struct {
	cfg Config
	log *slog.Logger

	monitor *spool.Monitor
	stub    *dns.Stub // the resolver when it is our own
	planner *route.Planner
	egress  *egress.Manager

	// made by Run, when the spools are open
	store   *mta.Store
	journal *journal.Journal
	queue   *queue.Manager
	smtp    []*smtpd.Server
	http    []*httpapi.Server

	state   atomic.Int32
	ready   chan struct{}
	started chan struct{}
}

// States of a server, in order.
const (
	stateStarting int32 = iota
	stateServing
	stateStopping
)

// New checks cfg and builds what needs no files or sockets.
func New(cfg Config) (*Server, error) {
	if err := fillDefaults(&cfg); err != nil {
		return nil, err
	}
	if err := check(&cfg); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, log: cfg.Log, ready: make(chan struct{}), started: make(chan struct{}),
		monitor: spool.NewMonitor(cfg.Log)}
	var err error
	resolver := cfg.Resolver
	if resolver == nil {
		if s.stub, err = systemResolver(); err != nil {
			return nil, err
		}
		resolver = s.stub
	}
	if s.planner, err = route.NewPlanner(route.Config{Resolver: resolver, Metrics: cfg.Metrics}); err != nil {
		return nil, err
	}
	if s.egress, err = egress.New(egress.Options{
		Bus: cfg.Bus, Planner: s.planner, Openers: map[string]egress.Opener{egress.SMTPClient: smtpc.New(smtpc.Options{})},
		Keeper: cfg.Keeper, Classify: cfg.Classify, Epoch: cfg.Epoch, Metrics: cfg.Metrics, Log: cfg.Log, Hostname: cfg.Hostname,
	}); err != nil {
		return nil, err
	}
	return s, nil
}

func fillDefaults(cfg *Config) error {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Metrics == nil {
		cfg.Metrics = metric.NewSet()
	}
	if cfg.Epoch == nil {
		cfg.Epoch = new(settings.Epoch)
	}
	if cfg.Keeper == nil {
		cfg.Keeper = limit.NewLocal()
	}
	if cfg.Bus == nil {
		cfg.Bus = new(event.Local)
	}
	if cfg.Product == "" {
		cfg.Product = "svc"
	}
	if cfg.Hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("no hostname given and the system has none: %w", err)
		}
		cfg.Hostname = name
	}
	if cfg.NodeID == "" {
		id, err := uuid.NewV4()
		if err != nil {
			return fmt.Errorf("make a node id: %w", err)
		}
		cfg.NodeID = id.String()
	}
	return nil
}

// check finds mistakes in the configuration as a whole.
func check(cfg *Config) error {
	if (cfg.Meta == nil) != (cfg.Data == nil) {
		return errors.New("give both spools, Meta and Data, or none")
	}
	if cfg.Meta != nil && len(cfg.Spools) > 0 {
		return errors.New("give spools or definitions of spools, not both")
	}
	for i, c := range cfg.SMTP {
		if err := settings.Check(fmt.Sprintf("SMTP[%d]", i), &c); err != nil {
			return err
		}
	}
	for i, c := range cfg.HTTP {
		if err := settings.Check(fmt.Sprintf("HTTP[%d]", i), &c); err != nil {
			return err
		}
	}
	for i, c := range cfg.Logs {
		if err := settings.Check(fmt.Sprintf("Logs[%d]", i), &c); err != nil {
			return err
		}
	}
	return checkSpools(cfg)
}

func checkSpools(cfg *Config) error {
	if len(cfg.Spools) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for i := range cfg.Spools {
		c := &cfg.Spools[i]
		switch {
		case c.Name != MetaSpool && c.Name != DataSpool:
			return fmt.Errorf("define_spool: unknown spool %q: define %q and %q", c.Name, MetaSpool, DataSpool)
		case seen[c.Name]:
			return fmt.Errorf("define_spool: spool %q is defined twice", c.Name)
		}
		seen[c.Name] = true
	}
	switch {
	case !seen[MetaSpool] || !seen[DataSpool]:
		return fmt.Errorf("define_spool: both %q and %q have to be defined", MetaSpool, DataSpool)
	case cfg.OpenSpool == nil:
		return errors.New("spools are defined, but Config.OpenSpool is not set: use spool/kinds.Open")
	}
	return nil
}

func systemResolver() (*dns.Stub, error) {
	rc, err := dns.LoadResolvConf("/etc/resolv.conf")
	if err != nil {
		return nil, fmt.Errorf("system resolver: %w", err)
	}
	stub, err := dns.NewStub(rc.StubConfig())
	if err != nil {
		return nil, fmt.Errorf("system resolver: %w", err)
	}
	return stub, nil
}

// Ready is closed when all listeners are bound and serve.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Started is closed when the spools are open and mail can be inserted.
func (s *Server) Started() <-chan struct{} { return s.started }

// Recovered is closed when every message of the spool is back in a queue. It blocks for ever on a server that was not
// started; wait for Started first.
func (s *Server) Recovered() <-chan struct{} { return s.queue.Recovered() }

// SMTPAddrs and HTTPAddrs return the bound addresses in order of configuration; call them after Ready.
func (s *Server) SMTPAddrs() []net.Addr {
	addrs := make([]net.Addr, len(s.smtp))
	for i, l := range s.smtp {
		addrs[i] = l.Addr()
	}
	return addrs
}

// HTTPAddrs is described with [Server.SMTPAddrs].
func (s *Server) HTTPAddrs() []net.Addr {
	addrs := make([]net.Addr, len(s.http))
	for i, l := range s.http {
		addrs[i] = l.Addr()
	}
	return addrs
}

// Store is where messages are made; call it after Started.
func (s *Server) Store() *mta.Store { return s.store }

// Inbound takes messages made with [Server.Store]; call it after Started.
func (s *Server) Inbound() mta.Inbound { return s.queue }

// Queued returns the number of messages in the care of the server.
func (s *Server) Queued() int {
	if s.state.Load() == stateStarting {
		return 0
	}
	return s.queue.Len()
}

// Metrics returns the instruments of the server.
func (s *Server) Metrics() *metric.Set { return s.cfg.Metrics }

// Epoch returns the configuration epoch; bumping it makes configurations be asked for again (flows CE-3).
func (s *Server) Epoch() *settings.Epoch { return s.cfg.Epoch }

// gate says whether new mail is accepted (flows SM-4, HI-1).
func (s *Server) gate() *mta.Refusal {
	switch s.state.Load() {
	case stateStarting:
		return &mta.Refusal{Reason: "waiting for spool startup. Try again soon!"}
	case stateStopping:
		return &mta.Refusal{Reason: "shutting down"}
	}
	if _, full := s.monitor.Full(); full {
		return &mta.Refusal{Reason: "disk is too full", Denied: true}
	}
	for _, sp := range [2]spool.Spool{s.store.Meta, s.store.Data} {
		if h, ok := sp.(spool.Healther); ok {
			if err := h.Health(); err != nil && !errors.Is(err, spool.ErrFull) {
				return &mta.Refusal{Reason: "the spool is not accepting writes. Try later", Denied: true}
			}
		}
	}
	return nil
}

// listenerLine tells that a listener is bound, in the form that tools wait for.
func (s *Server) listenerLine(ctx context.Context, proto string, addr net.Addr) {
	s.log.InfoContext(ctx, fmt.Sprintf("%s listener on %s", proto, addr))
}
