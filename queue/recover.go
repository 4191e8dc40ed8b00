package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/svc/mta"
	"example.com/svc/spool"
)

// recoverBatch is how many messages a worker places at once; what policies changed in them is saved with one commit.
const recoverBatch = 256

// early remembers the messages inserted during the recovery that look as if they had been there before: those with an
// ID from another node or time. The recovery passes over them.
type early struct {
	before time.Time
	over   atomic.Bool

	mu  sync.Mutex
	ids map[spool.ID]struct{}
}

func (e *early) add(ms []*mta.Message) {
	if e.over.Load() {
		return
	}
	for _, msg := range ms {
		if !msg.Created().Before(e.before) {
			continue
		}
		e.mu.Lock()
		if e.ids == nil {
			e.ids = make(map[spool.ID]struct{})
		}
		e.ids[msg.ID()] = struct{}{}
		e.mu.Unlock()
	}
}

func (e *early) has(id spool.ID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, ok := e.ids[id]
	return ok
}

func (e *early) end() {
	e.over.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids = nil
}

// recover puts every message found at start into its queue (flows SP-3, Q4). The error is that of a handler or of the
// store; nil when ctx ended.
func (m *Manager) recover(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	batches := make(chan []*mta.Message, m.o.RecoverWorkers)
	var workers sync.WaitGroup
	for range m.o.RecoverWorkers {
		workers.Go(func() {
			for ms := range batches {
				if err := m.recoverAll(ctx, ms); err != nil {
					cancel(err)
				}
			}
		})
	}
	found, err := m.enumerate(ctx, batches)
	close(batches)
	workers.Wait()
	if ctx.Err() != nil { // a handler failed, or shutdown
		if err = context.Cause(ctx); errors.Is(err, context.Canceled) || !errors.Is(err, errRecovery) {
			return nil
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRecovery, err)
	}
	m.early.end()
	if found > 0 {
		m.log.Info("messages recovered", "count", found, "took", time.Since(start).Round(time.Millisecond))
	}
	close(m.recovered)
	return nil
}

var errRecovery = errors.New("queue: recovery of the spool failed")

// enumerate hands the messages of the store to the workers and returns how many it found.
func (m *Manager) enumerate(ctx context.Context, to chan<- []*mta.Message) (found int, err error) {
	var batch []*mta.Message
	for msg, err := range m.o.Store.Recover(ctx, m.start) {
		if err != nil {
			releaseAll(batch)
			return found, err
		}
		if m.early.has(msg.ID()) {
			msg.Release()
			continue
		}
		found++
		if batch = append(batch, msg); len(batch) == recoverBatch {
			to <- batch
			batch = make([]*mta.Message, 0, recoverBatch)
		}
		if ctx.Err() != nil {
			break
		}
	}
	to <- batch
	return found, nil
}

func releaseAll(ms []*mta.Message) {
	for _, msg := range ms {
		msg.Release()
	}
}

// recoverAll places a batch. Messages that it does not get to, because ctx ended or a handler failed, stay in the
// store.
func (m *Manager) recoverAll(ctx context.Context, ms []*mta.Message) error {
	kept := make([]*mta.Message, 0, len(ms))
	var dirty []*mta.Message
	qs := make([]*scheduled, 0, len(ms))
	var fault error
	left := make(map[string]*leftover)
	for _, msg := range ms {
		if fault != nil || ctx.Err() != nil {
			msg.Release()
			continue
		}
		if _, _, err := OnSpoolEnumerated.Call(ctx, m.o.Bus, msg); err != nil {
			fault = fmt.Errorf("%w: message %s: %w", errRecovery, msg.ID(), err)
			msg.Release()
			continue
		}
		q := m.recoverQueue(ctx, msg, left)
		if q == nil {
			continue
		}
		kept, qs = append(kept, msg), append(qs, q)
		if msg.Dirty() {
			dirty = append(dirty, msg)
		}
	}
	for queue, l := range left {
		m.log.Error("messages stay in the spool until the next start", "queue", queue, "count", l.n,
			"first", l.first.String(), "err", l.err)
	}
	if len(dirty) > 0 {
		if err := m.o.Store.SaveAll(ctx, dirty...); err != nil {
			m.log.Warn("changes of recovered messages not saved yet", "count", len(dirty), "err", err)
		}
	}
	for i, msg := range kept {
		m.admit(qs[i])
		m.placeRecovered(ctx, qs[i], msg)
	}
	return fault
}

// leftover is what stays in the spool of one queue.
type leftover struct {
	n     int
	first spool.ID
	err   error
}

// recoverQueue returns the queue of msg, held; nil when msg was dealt with otherwise (flows SP-6).
func (m *Manager) recoverQueue(ctx context.Context, msg *mta.Message, left map[string]*leftover) *scheduled {
	name, err := msg.Queue(ctx)
	if err != nil {
		resp := mta.Internal(551, badNameCode, err.Error())
		r := newRecord(ctx, "", msg, nil, mta.Expiration, msg.Envelope().Recipients, resp)
		r.Site = "localhost"
		if q, err := m.resolve(ctx, mta.QueueName{Domain: mta.NullQueue}); err == nil { // somebody has to account for it
			m.admit(q)
			m.conclude(ctx, q, &item{m: msg}, []*mta.Record{r}, nil)
		}
		return nil
	}
	q, err := m.resolve(ctx, name)
	if err != nil {
		l := left[queueText(name)]
		if l == nil {
			l = &leftover{first: msg.ID(), err: err}
			left[queueText(name)] = l
		}
		l.n++
		msg.Release()
		return nil
	}
	return q
}

// placeRecovered infers what was not stored (flows SP-4, SP-5) and puts msg into its queue.
func (m *Manager) placeRecovered(ctx context.Context, q *scheduled, msg *mta.Message) {
	cfg, now := q.cfg.Load(), m.wall()
	age := m.ageByWall(msg)
	it := item{m: msg, born: m.now() - int64(age), why: whyEnumerated}
	attempts, sum := cfg.infer(age)
	msg.SetAttempts(attempts)
	sched := msg.Scheduling()
	due := sched.Adjust(now.Add(max(sum-age, 0)))
	limit := time.Duration(cfg.MaxAge)
	switch {
	case sched != nil && !sched.Expires.IsZero():
		if !due.Before(sched.Expires) {
			m.expire(ctx, q, &it, "was found at start past its expiry at "+sched.Expires.UTC().Format(time.RFC3339))
			return
		}
	case age >= limit || sum >= limit:
		m.expire(ctx, q, &it, "was found at start at an age of "+spanText(age)+", the limit is "+spanText(limit))
		return
	}
	if due.After(now) {
		m.schedule(ctx, q, it, now, due, "")
		return
	}
	msg.SetDue(now)
	m.shrink(ctx, msg, ShrinkDataAndMeta)
	share(msg, q)
	m.enqueue(q, it)
}
