package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"example.com/svc/httpapi"
	"example.com/svc/httpapi/inject"
	"example.com/svc/mta"
	"example.com/svc/mta/journal"
	"example.com/svc/mta/smtpd"
	"example.com/svc/queue"
	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

// Run starts everything, serves until ctx ends, and returns when all mail is settled and everything is closed. A start
// that fails leaves nothing behind. It is called once.
func (s *Server) Run(ctx context.Context) error {
	err := s.run(ctx)
	if s.stub != nil {
		err = errors.Join(err, s.stub.Close())
	}
	return err
}

func (s *Server) run(ctx context.Context) error {
	if err := s.openSpools(ctx); err != nil {
		return errors.Join(err, s.closeSpools())
	}
	if err := s.openLogs(); err != nil {
		return errors.Join(err, s.closeLogs(), s.closeSpools())
	}
	if err := s.bind(ctx); err != nil {
		return errors.Join(err, s.closeListeners(), s.closeLogs(), s.closeSpools())
	}
	work := context.WithoutCancel(ctx)
	parts := newGroup(work)

	journal := parts.stage("journal", s.journal.Run)
	monitor := parts.stage("disk monitor", s.monitor.Run)
	web := parts.stage("http", serveAll(s.http))
	carry := parts.stage("egress", s.egress.Run)
	queued := parts.stage("queue", s.queue.Run)
	s.state.Store(stateServing)
	close(s.started)
	mail := parts.stage("smtp", serveAll(s.smtp))
	s.log.Info("initialization complete")
	close(s.ready)

	select {
	case <-ctx.Done():
	case <-parts.failed:
	}
	s.log.Info("shutting down", "queued", s.queue.Len())
	s.state.Store(stateStopping)
	mail.stop()
	mail.wait()
	queued.stop() // both at once: the queue waits for the tickets that the dispatchers bring home
	carry.stop()
	carry.wait()
	queued.wait()
	web.stop()
	web.wait()
	if _, _, err := OnShutdownLogging.Call(work, s.cfg.Bus, Start{}); err != nil {
		s.log.Error("shutdown_logging failed", "err", err)
	}
	monitor.stop()
	monitor.wait()
	journal.stop()
	journal.wait()
	err := errors.Join(parts.err(), s.journal.Close(), s.closeSpools())
	s.log.Info("stopped")
	return err
}

// openSpools opens what the configuration names.
func (s *Server) openSpools(ctx context.Context) error {
	meta, data := s.cfg.Meta, s.cfg.Data
	if meta == nil && len(s.cfg.Spools) == 0 {
		s.log.Warn("no spool is defined: messages are kept in memory only and are lost when the process ends")
		meta, data = memory.New(), memory.New()
	}
	for _, c := range s.cfg.Spools {
		sp, err := s.cfg.OpenSpool(ctx, c, s.log)
		if err != nil {
			s.store = &mta.Store{Meta: meta, Data: data}
			return err
		}
		if c.Name == MetaSpool {
			meta = sp
		} else {
			data = sp
		}
		if err := s.monitor.Add(c.Name, c.Path, c.MinFreeSpace, c.MinFreeInodes); err != nil {
			s.store = &mta.Store{Meta: meta, Data: data}
			return err
		}
	}
	s.store = mta.NewStore(meta, data, s.cfg.Metrics, s.log)
	return nil
}

// openLogs makes the journal, whose directories are made and whose finished segments are closed only when the locks on
// the spools show that no other process uses them, and the queue.
func (s *Server) openLogs() (err error) {
	if s.journal, err = journal.New(journal.Options{Configs: s.cfg.Logs, Bus: s.cfg.Bus, Metrics: s.cfg.Metrics, Log: s.log,
		NodeID: s.cfg.NodeID}); err != nil {
		return err
	}
	for _, g := range s.journal.Guarded() {
		if err := s.monitor.Add(g.Dir, g.Dir, g.MinFreeSpace, g.MinFreeInodes); err != nil {
			return err
		}
	}
	s.showDisks()
	s.queue, err = queue.New(queue.Options{Store: s.store, Bus: s.cfg.Bus, Outlet: s.egress, Recorder: s.journal,
		Keeper: s.cfg.Keeper, Epoch: s.cfg.Epoch, Metrics: s.cfg.Metrics, Log: s.log})
	return err
}

func (s *Server) closeLogs() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// closeSpools closes what was opened; spools in memory are emptied.
func (s *Server) closeSpools() error {
	if s.store == nil {
		return nil
	}
	var errs []error
	for _, sp := range [2]spool.Spool{s.store.Meta, s.store.Data} {
		if sp != nil {
			errs = append(errs, sp.Close())
		}
	}
	return errors.Join(errs...)
}

// bind makes and binds all listeners, so that a mistake ends the start before anything serves.
func (s *Server) bind(ctx context.Context) error {
	injector := inject.New(inject.Options{Bus: s.cfg.Bus, Store: s.store, Inbound: s.queue, Metrics: s.cfg.Metrics,
		Product: s.cfg.Product})
	for _, c := range s.cfg.HTTP {
		l, err := httpapi.New(c, httpapi.Options{Bus: s.cfg.Bus, Injector: injector, Gate: s.gate, Metrics: s.cfg.Metrics,
			Log: s.log})
		if err != nil {
			return err
		}
		if err := l.Listen(ctx); err != nil {
			return err
		}
		s.http = append(s.http, l)
		s.listenerLine(ctx, "http", l.Addr())
	}
	for _, c := range s.cfg.SMTP {
		l, err := smtpd.New(c, smtpd.Options{Bus: s.cfg.Bus, Store: s.store, Inbound: s.queue, Recorder: s.journal,
			Gate: s.gate, Metrics: s.cfg.Metrics, Log: s.log, Product: s.cfg.Product})
		if err != nil {
			return err
		}
		if err := l.Listen(ctx); err != nil {
			return err
		}
		s.smtp = append(s.smtp, l)
		s.listenerLine(ctx, "smtp", l.Addr())
	}
	return nil
}

func (s *Server) closeListeners() error {
	var errs []error
	for _, l := range s.http {
		errs = append(errs, l.Close())
	}
	for _, l := range s.smtp {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// showDisks declares the gauges of the disk monitor (metrics.tsv, disk_free_*).
func (s *Server) showDisks() {
	for _, g := range []struct {
		name, help string
		pick       func(bytes, inodes uint64, pctBytes, pctInodes float64) float64
	}{
		{"disk_free_bytes", "Free bytes at a monitored spool or log location",
			func(b, _ uint64, _, _ float64) float64 { return float64(b) }},
		{"disk_free_inodes", "Free inodes at a monitored spool or log location",
			func(_, i uint64, _, _ float64) float64 { return float64(i) }},
		{"disk_free_percent", "Free space percentage at a monitored location",
			func(_, _ uint64, p, _ float64) float64 { return p }},
		{"disk_free_inodes_percent", "Free inode percentage at a monitored location",
			func(_, _ uint64, _, p float64) float64 { return p }},
	} {
		s.cfg.Metrics.Func(g.name, g.help, "gauge", []string{"name"}, func(emit func([]string, float64)) {
			s.monitor.Each(func(name string, b, i uint64, pb, pi float64) { emit([]string{name}, g.pick(b, i, pb, pi)) })
		})
	}
}

// runner is a part that serves until its context ends.
type runner interface{ Run(context.Context) error }

// serveAll runs parts side by side.
func serveAll[R runner](rs []R) func(context.Context) error {
	return func(ctx context.Context) error {
		var wg sync.WaitGroup
		errs := make([]error, len(rs))
		for i, r := range rs {
			wg.Go(func() { errs[i] = r.Run(ctx) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
}

// group runs the parts of a server and notices when one fails.
type group struct {
	ctx    context.Context
	failed chan struct{} // closed at the first error
	once   sync.Once
	mu     sync.Mutex
	errs   []error
}

func newGroup(ctx context.Context) *group { return &group{ctx: ctx, failed: make(chan struct{})} }

// stage is a running part.
type stage struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (g *group) stage(name string, run func(context.Context) error) *stage {
	ctx, cancel := context.WithCancel(g.ctx)
	st := &stage{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(st.done)
		if err := run(ctx); err != nil {
			g.fail(fmt.Errorf("%s: %w", name, err))
		}
	}()
	return st
}

func (g *group) fail(err error) {
	g.mu.Lock()
	g.errs = append(g.errs, err)
	g.mu.Unlock()
	g.once.Do(func() { close(g.failed) })
}

func (g *group) err() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return errors.Join(g.errs...)
}

func (s *stage) stop() { s.cancel() }
func (s *stage) wait() { <-s.done }
