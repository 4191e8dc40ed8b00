package server

import (
	"errors"
	"sync"

	"example.com/svc/httpapi"
	"example.com/svc/mta/journal"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/spool"
)

// ErrNotInit says that something that belongs into init was asked for later.
var ErrNotInit = errors.New("this can only be called in init")

// ErrNotRunning says that something that needs the running service was asked for in init.
var ErrNotRunning = errors.New("this needs the running service and cannot be called in init")

// Builder lets a policy put a [Config] together during init, and use the server afterwards. It is safe for concurrent
// use.
type Builder struct {
	mu  sync.Mutex
	cfg Config
	srv *Server
}

// NewBuilder begins with cfg. It gives it an epoch if it has none.
func NewBuilder(cfg Config) *Builder {
	if cfg.Epoch == nil {
		cfg.Epoch = new(settings.Epoch)
	}
	return &Builder{cfg: cfg}
}

// change runs fn on the configuration, unless the server was made already.
func (b *Builder) change(fn func(*Config)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.srv != nil {
		return ErrNotInit
	}
	fn(&b.cfg)
	return nil
}

// Edit lets fn change the configuration. It returns [ErrNotInit] after Build.
func (b *Builder) Edit(fn func(*Config)) error { return b.change(fn) }

// AddSMTP adds an SMTP listener.
func (b *Builder) AddSMTP(c smtpd.Config) error {
	return b.change(func(cfg *Config) { cfg.SMTP = append(cfg.SMTP, c) })
}

// AddHTTP adds an HTTP listener.
func (b *Builder) AddHTTP(c httpapi.Config) error {
	return b.change(func(cfg *Config) { cfg.HTTP = append(cfg.HTTP, c) })
}

// AddSpool adds the definition of a spool.
func (b *Builder) AddSpool(c spool.Config) error {
	return b.change(func(cfg *Config) { cfg.Spools = append(cfg.Spools, c) })
}

// AddLogs adds a logger.
func (b *Builder) AddLogs(c journal.Config) error {
	return b.change(func(cfg *Config) { cfg.Logs = append(cfg.Logs, c) })
}

// Build makes the server. Later calls return the same one.
func (b *Builder) Build() (*Server, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.srv == nil {
		srv, err := New(b.cfg)
		if err != nil {
			return nil, err
		}
		b.srv = srv
	}
	return b.srv, nil
}

// Server returns the server, or [ErrNotRunning] before Build.
func (b *Builder) Server() (*Server, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.srv == nil {
		return nil, ErrNotRunning
	}
	return b.srv, nil
}

// Bump raises the configuration epoch: configurations with the refresh strategy Epoch are asked for again (flows CE-2).
func (b *Builder) Bump() {
	b.mu.Lock()
	epoch := b.cfg.Epoch
	b.mu.Unlock()
	epoch.Bump()
}
