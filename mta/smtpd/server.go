package smtpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
)

// Options are what a [Server] works with. Store and Inbound are required.
type Options struct {
	// Bus answers the questions of events.go; nil means every default.
	Bus event.Bus
	// Store makes the messages.
	Store *mta.Store
	// Inbound takes responsibility for them.
	Inbound mta.Inbound
	// Recorder gets Rejection records, and the Reception records of messages that were refused at the end (flows
	// SM-42). Nil discards.
	Recorder mta.Recorder
	// Gate is asked for each connection and each MAIL. Nil accepts.
	Gate mta.Gate
	// Metrics may be nil.
	Metrics *metric.Set
	// Log defaults to slog.Default.
	Log *slog.Logger
	// Product is the name in Received headers; empty means "svc".
	Product string
	// Keys loads TLS keys that are kept elsewhere; may be nil.
	Keys settings.Loader
	// DrainTimeout bounds how long content that is being received may take after the end of the context; 0 means 30
	// seconds.
	DrainTimeout time.Duration
	// MaxReceived is the number of Received headers above which a message is taken for looping; 0 means 100 (RFC 5321
	// section 6.3).
	MaxReceived int
}

// Server is one listener. Its methods are safe for concurrent use.
type Server struct {
	cfg  Config
	o    Options
	log  *slog.Logger
	inst *instruments
	tls  *tlsKeeper

	live atomic.Int64
	deny chan struct{} // slots for refusing connections

	mu       sync.Mutex
	ln       net.Listener
	sessions map[*session]struct{}
}

// maxDenying bounds how many surplus connections are told so at once; beyond it they are closed without a word.
const maxDenying = 64

// New makes a server that does not listen yet. The error names the place of declaration and what is wrong with the
// settings or the certificate.
func New(cfg Config, o Options) (*Server, error) {
	if o.Store == nil || o.Inbound == nil {
		return nil, errors.New("smtpd: Options without Store or Inbound")
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("SMTP listener%s: %w", at(cfg.Source), err)
	}
	if cfg.Hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("SMTP listener%s: name of this machine: %w", at(cfg.Source), err)
		}
		cfg.Hostname = name
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Product == "" {
		o.Product = "svc"
	}
	if o.DrainTimeout <= 0 {
		o.DrainTimeout = 30 * time.Second
	}
	if o.MaxReceived <= 0 {
		o.MaxReceived = 100
	}
	keeper, err := newTLSKeeper(&cfg, o.Keys)
	if err != nil {
		return nil, fmt.Errorf("SMTP listener%s: %w", at(cfg.Source), err)
	}
	return &Server{
		cfg: cfg, o: o, tls: keeper, inst: newInstruments(o.Metrics),
		log:      o.Log.With("listener", cfg.Listen),
		deny:     make(chan struct{}, maxDenying),
		sessions: make(map[*session]struct{}),
	}, nil
}

func at(source string) string {
	if source == "" {
		return ""
	}
	return " at " + source
}

// Listen binds the address. The error names the place of declaration and the address.
func (s *Server) Listen(ctx context.Context) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.cfg.Listen)
	if err != nil {
		return fmt.Errorf("SMTP listener%s: bind %s: %w", at(s.cfg.Source), s.cfg.Listen, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln != nil {
		return errors.Join(errors.New("smtpd: Listen was called twice"), ln.Close())
	}
	s.ln = ln
	return nil
}

// Addr returns the bound address, nil before Listen.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln == nil {
		return nil
	}
	return s.ln.Addr()
}

// Run serves until ctx ends and then drains as [Server.Serve] does. It binds first when Listen was not called.
func (s *Server) Run(ctx context.Context) error {
	if s.Addr() == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	s.mu.Lock()
	ln := s.ln
	s.mu.Unlock()
	return s.Serve(ctx, ln)
}

// Close closes the listening socket of a server that was never run. It is harmless otherwise.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ln == nil {
		return nil
	}
	if err := s.ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// ServeConn serves one connection and closes it. When ctx ends, a session that waits for a command gets 421 4.3.2 at
// once; one that receives content may finish within the drain timeout.
func (s *Server) ServeConn(ctx context.Context, conn net.Conn) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ss := newSession(s, work, conn)
	var timer *time.Timer
	var mu sync.Mutex
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		ss.wire.stop()
		timer = time.AfterFunc(s.o.DrainTimeout, func() {
			cancel()
			_ = conn.Close()
		})
	})
	s.track(ss)
	ss.serve()
	s.untrack(ss)
	stop()
	mu.Lock()
	defer mu.Unlock()
	if timer != nil {
		timer.Stop()
	}
}

func (s *Server) track(ss *session) {
	s.live.Add(1)
	s.inst.connections.Inc()
	s.inst.accepted.Inc()
	s.mu.Lock()
	s.sessions[ss] = struct{}{}
	s.mu.Unlock()
}

func (s *Server) untrack(ss *session) {
	s.mu.Lock()
	delete(s.sessions, ss)
	s.mu.Unlock()
	s.inst.connections.Dec()
	s.live.Add(-1)
}

// each calls fn for the sessions there are.
func (s *Server) each(fn func(*session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ss := range s.sessions {
		fn(ss)
	}
}

// addrPort returns the address of a TCP end; the zero value for any other.
func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}
