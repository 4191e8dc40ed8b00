package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
)

// ErrClosed reports a record after the journal was closed.
var ErrClosed = errors.New("journal is closed")

// Options make a journal.
type Options struct {
	// Configs are the loggers. None means that records are accepted and dropped.
	Configs []Config
	// Bus carries the filter events. May be nil.
	Bus event.Bus
	// Metrics takes the instruments. May be nil.
	Metrics *metric.Set
	// Log takes diagnostics. Nil means the default logger.
	Log *slog.Logger
	// NodeID is the UUID of this node, for the field nodeid.
	NodeID string
}

// Journal writes log records. It is made by [New] and safe for concurrent use.
type Journal struct {
	node    string
	log     *slog.Logger
	bus     event.Bus
	loggers []*logger
	lines   linePool
	stop    chan struct{} // closed when records are no longer taken

	// gate is read-locked while a record is being submitted, so that no queue is closed under a producer. Nothing
	// else is locked below it.
	gate   sync.RWMutex
	closed bool // guarded by gate

	mu      sync.Mutex
	started bool          // guarded by mu; the goroutines of the loggers run or have run
	done    chan struct{} // closed when all loggers have finished
	err     error         // of the loggers; may be read once done is closed
	ending  bool          // guarded by mu; stop is closed
}

var _ mta.Recorder = (*Journal)(nil)

// Guarded is a directory whose free space and inodes decide whether new mail is accepted (logs.md 3.8).
type Guarded struct {
	Dir                         string
	MinFreeSpace, MinFreeInodes settings.FreeSpace
}

// New checks the configurations, makes the log directories and makes the segments found in them read-only. Records are
// written once [Journal.Run] runs; until then they wait in the queues.
func New(o Options) (*Journal, error) {
	j := &Journal{node: o.NodeID, log: o.Log, bus: o.Bus, stop: make(chan struct{}), done: make(chan struct{})}
	if j.log == nil {
		j.log = slog.Default()
	}
	for i := range o.Configs {
		l, err := newLogger(j, o.Configs[i], o.Metrics)
		if err != nil {
			return nil, fmt.Errorf("configure_local_logs: %w", err)
		}
		j.loggers = append(j.loggers, l)
	}
	return j, nil
}

// Guarded returns the log directories for the disk monitor.
func (j *Journal) Guarded() []Guarded {
	gs := make([]Guarded, len(j.loggers))
	for i, l := range j.loggers {
		gs[i] = Guarded{Dir: l.cfg.LogDir, MinFreeSpace: l.cfg.MinFreeSpace, MinFreeInodes: l.cfg.MinFreeInodes}
	}
	return gs
}

// Record encodes r and queues it to every logger that wants it; m is the message it is about, nil when there is none.
// A nil error means that the record was accepted (Q2). It waits while a queue is full. Errors: [ErrClosed], and the
// cause of ctx when it ended while waiting; some loggers may have the record then. Metadata or headers that cannot be
// loaded are left out of the record and reported in the diagnostic log.
func (j *Journal) Record(ctx context.Context, m *mta.Message, r *mta.Record) error {
	var base *line
	var src source
	for _, l := range j.loggers {
		to := l.wants(ctx, m, r)
		if to == nil {
			continue
		}
		if base == nil {
			src = source{log: j.log, m: m, r: r}
			base = j.lines.get()
			base.buf = appendRecord(base.buf, r, j.node, src.reception(ctx), time.Now())
		}
		ln := j.lines.get()
		ln.to = to
		ln.buf = append(ln.buf, base.buf...)
		ln.buf = l.finishLine(ctx, ln.buf, &src)
		if err := j.submit(ctx, l, ln); err != nil {
			j.lines.put(ln)
			j.lines.put(base)
			return err
		}
	}
	if base != nil {
		j.lines.put(base)
	}
	return nil
}

// submit puts a line into the queue of a logger, waiting while it is full.
func (j *Journal) submit(ctx context.Context, l *logger, ln *line) error {
	j.gate.RLock()
	defer j.gate.RUnlock()
	if j.closed {
		return ErrClosed
	}
	start := time.Now()
	defer l.m.submitLatency.ObserveSince(start)
	select {
	case l.queue <- ln:
		return nil
	default:
	}
	l.m.submitFull.Inc()
	select {
	case l.queue <- ln:
		return nil
	case <-j.stop:
		return ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("queue a log record for %s: %w", l.cfg.LogDir, context.Cause(ctx))
	}
}

// Run writes records until ctx ends or Close is called; then it takes no more records, writes those it has, closes the
// segments and returns. The error is non-nil when records were lost because a disk failed at the end (JL1). Run is
// called once.
func (j *Journal) Run(ctx context.Context) error {
	j.start()
	select {
	case <-ctx.Done():
	case <-j.stop:
	}
	return j.Close()
}

// start starts the goroutines of the loggers, once.
func (j *Journal) start() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.started {
		return
	}
	j.started = true
	errs := make([]error, len(j.loggers))
	var wg sync.WaitGroup
	for i, l := range j.loggers {
		wg.Go(func() { errs[i] = l.run() })
	}
	go func() { // awaited through done by Close
		wg.Wait()
		j.err = errors.Join(errs...)
		close(j.done)
	}()
}

// Close takes no more records, waits until those that were accepted are written, and closes the segments. It works
// with and without Run and may be called several times. See [Journal.Run] for its error.
func (j *Journal) Close() error {
	j.mu.Lock()
	first := !j.ending
	if first {
		j.ending = true
		close(j.stop) // producers that wait for room leave, and so release the gate
	}
	j.mu.Unlock()
	if first {
		j.gate.Lock()
		j.closed = true
		for _, l := range j.loggers {
			close(l.queue)
		}
		j.gate.Unlock()
	}
	j.start()
	<-j.done
	return j.err
}

// Flush returns once the records that were accepted before the call are in files, where readers see them. It returns
// the error of a disk that fails now, while the records are kept and tried again, [ErrClosed], or the cause of ctx. It
// needs a running journal.
func (j *Journal) Flush(ctx context.Context) error { return j.control(ctx, (*logger).flush) }

// Rotate is Flush that also closes the open segments (logs.md 3.6, memory headroom 0).
func (j *Journal) Rotate(ctx context.Context) error { return j.control(ctx, (*logger).rotate) }

// control runs do on the goroutine of every logger, after the lines that are queued now.
func (j *Journal) control(ctx context.Context, do func(*logger) error) error {
	answers := make(chan error, len(j.loggers))
	for _, l := range j.loggers {
		if err := j.submit(ctx, l, &line{do: func() { answers <- do(l) }}); err != nil {
			return err
		}
	}
	var errs []error
	for range j.loggers {
		select {
		case err := <-answers:
			errs = append(errs, err)
		case <-ctx.Done():
			return fmt.Errorf("flush the journal: %w", context.Cause(ctx))
		}
	}
	return errors.Join(errs...)
}
