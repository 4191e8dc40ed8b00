package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/journal/jsonl"
	"example.com/svc/mta/metric"
)

const (
	// flushInterval is how long a line may wait in memory.
	flushInterval = time.Second
	// retryInterval is the time between attempts while a disk fails.
	retryInterval = time.Second
	// reportInterval is the time between reports of a disk that keeps failing.
	reportInterval = time.Minute
	// closeGrace is how long a failing disk is tried at shutdown.
	closeGrace = 10 * time.Second
)

// logger is one configured logger: what it wants, its queue, and its files, which belong to the goroutine of run.
type logger struct {
	cfg    Config
	log    *slog.Logger
	bus    event.Bus
	filter *event.Event[FilterArgs, bool] // nil for none
	meta   patterns
	header patterns
	byType map[mta.RecordType]*target // nil targets for types that are not logged
	m      instruments
	lines  *linePool
	stop   <-chan struct{}
	queue  chan *line

	targets  []*target
	reported time.Time // when a failing disk was last reported
	failing  bool
	deadline time.Time // when a failing disk is given up; set at shutdown
}

// target is where lines of some record types go.
type target struct {
	w    *jsonl.Writer
	lost int // lines given up at shutdown
}

func newLogger(j *Journal, cfg Config, set *metric.Set) (*logger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := &logger{
		cfg:    cfg,
		log:    j.log.With("logger", cfg.LogDir),
		bus:    j.bus,
		meta:   newPatterns(cfg.Meta, false),
		header: newPatterns(cfg.Headers, true),
		byType: make(map[mta.RecordType]*target),
		m:      newInstruments(set, cfg.LogDir),
		lines:  &j.lines,
		stop:   j.stop,
		queue:  make(chan *line, cfg.BackPressure),
	}
	if cfg.FilterEvent != "" {
		l.filter = FilterEvent(cfg.FilterEvent)
	}
	return l, l.openTargets()
}

// openTargets opens a writer for every place that record types use, and the logger's own, whose directory is made at
// once (logs.md 3.7).
func (l *logger) openTargets() error {
	headers, err := l.cfg.places()
	if err != nil {
		return err
	}
	byPlace := make(map[place]*target)
	open := func(p place) (*target, error) {
		if t, ok := byPlace[p]; ok {
			return t, nil
		}
		c := jsonl.Config{
			Dir: p.dir, Lazy: p.dir != l.cfg.LogDir, Suffix: p.suffix, Header: headers[p],
			MaxFileSize: int64(l.cfg.MaxFileSize), Level: l.cfg.CompressionLevel,
		}
		if d := l.cfg.MaxSegmentDuration; d != nil {
			c.MaxSegmentDuration = time.Duration(*d)
		}
		w, err := jsonl.Open(c)
		if err != nil {
			return nil, err
		}
		t := &target{w: w}
		byPlace[p] = t
		l.targets = append(l.targets, t)
		return t, nil
	}
	if _, err := open(place{dir: l.cfg.LogDir}); err != nil {
		return err
	}
	for _, typ := range mta.RecordTypes {
		e := l.cfg.entry(typ)
		if !e.Enable {
			continue
		}
		if l.byType[typ], err = open(place{e.LogDir, e.Suffix}); err != nil {
			return err
		}
	}
	return nil
}

// wants returns where the record goes, nil when the logger does not want it (logs.md 3.2, section 5).
func (l *logger) wants(ctx context.Context, m *mta.Message, r *mta.Record) *target {
	to := l.byType[r.Type]
	if to == nil || l.filter == nil || m == nil || r.Type == mta.RejectionRecord {
		return to
	}
	ok, _, err := l.filter.Call(ctx, l.bus, FilterArgs{Message: m})
	if err != nil {
		l.log.WarnContext(ctx, "filter_event failed, the record is not logged",
			"event", l.cfg.FilterEvent, "id", r.ID.String(), "error", err)
		return nil
	}
	if !ok {
		return nil
	}
	return to
}

// finishLine adds the chosen metadata and headers and ends the object.
func (l *logger) finishLine(ctx context.Context, b []byte, src *source) []byte {
	b = append(b, `,"meta":`...)
	if l.meta.empty() {
		b = append(b, '{', '}')
	} else {
		b = appendMeta(b, src.getMeta(ctx), &l.meta)
	}
	b = append(b, `,"headers":`...)
	if l.header.empty() || src.m == nil || src.r.Type == mta.RejectionRecord {
		b = append(b, '{', '}')
	} else {
		b = appendHeaders(b, src.getData(ctx), &l.header)
	}
	return append(b, '}', '\n')
}

// run writes lines until the queue is closed and empty, then closes the files.
func (l *logger) run() error {
	tick := time.NewTicker(flushInterval)
	defer tick.Stop()
	for {
		select {
		case ln, ok := <-l.queue:
			if !ok {
				return l.finish()
			}
			l.handle(ln)
		case <-tick.C:
			for _, t := range l.targets {
				if err := t.w.Flush(); err != nil {
					l.insist(t, err)
				}
			}
			l.recovered()
		}
	}
}

// handle writes one line. It returns when the writer has taken the line, or when the disk was given up (JL1).
func (l *logger) handle(ln *line) {
	defer l.lines.put(ln)
	if ln.do != nil {
		ln.do()
		return
	}
	t := ln.to
	for t.lost == 0 {
		err := t.w.Write(ln.buf)
		if err == nil {
			return
		}
		l.insist(t, err)
		if !errors.Is(err, jsonl.ErrFull) {
			return // the writer has it
		}
	}
	t.lost++
}

// insist tries to write what a writer holds until the disk takes it or the grace time of the shutdown is over.
func (l *logger) insist(t *target, err error) {
	stop := l.stop
	if !l.deadline.IsZero() {
		stop = nil
	}
	for err != nil {
		l.report(err)
		if !l.deadline.IsZero() && time.Now().After(l.deadline) {
			l.giveUp(t)
			return
		}
		retry := time.NewTimer(retryInterval)
		select {
		case <-retry.C:
		case <-stop:
			stop = nil
			l.deadline = time.Now().Add(closeGrace)
		}
		retry.Stop()
		err = t.w.Flush()
		for _, other := range l.targets {
			if other != t { // its lines must not wait for this disk; an error is met again at its own turn
				_ = other.w.Flush()
			}
		}
	}
	l.recovered()
}

func (l *logger) recovered() {
	if l.failing {
		l.failing = false
		l.log.Info("log records can be written again")
	}
}

func (l *logger) giveUp(t *target) {
	if n := t.w.Pending(); n > 0 && t.lost == 0 {
		t.lost = n
	}
}

// report tells of a failed attempt, at first and then once in a while.
func (l *logger) report(err error) {
	l.m.writeErrors.Inc()
	if now := time.Now(); !l.failing || now.Sub(l.reported) >= reportInterval {
		l.failing, l.reported = true, now
		l.log.Error("log records cannot be written; they are kept and tried again", "error", err)
	}
}

// flush brings the lines of all writers to their files. A failing disk is left to the next attempt.
func (l *logger) flush() error { return l.each((*jsonl.Writer).Flush) }

// rotate is flush that closes the segments.
func (l *logger) rotate() error { return l.each((*jsonl.Writer).Rotate) }

func (l *logger) each(do func(*jsonl.Writer) error) error {
	var errs []error
	for _, t := range l.targets {
		if err := do(t.w); err != nil {
			l.report(err)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// finish closes the files. Its error says how many lines were lost.
func (l *logger) finish() error {
	var errs []error
	for _, t := range l.targets {
		if t.lost == 0 {
			if err := t.w.Flush(); err != nil {
				l.insist(t, err)
			}
		}
		if t.lost > 0 {
			err := fmt.Errorf("%d log records for %s are lost: the disk failed until the end", t.lost, l.cfg.LogDir)
			l.log.Error("log records are lost", "count", t.lost)
			errs = append(errs, err)
			continue
		}
		if err := t.w.Close(); err != nil {
			l.log.Error("a log segment could not be finished", "error", err)
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
