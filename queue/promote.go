package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/limit"
	"example.com/svc/spool"
)

// maxRated is how many messages of one queue wait in the wheel because of max_message_rate. When it is reached the whole
// queue pauses instead, so that a large backlog costs no more than a small one.
const maxRated = 256

// minBusy is the shortest delay after a refusal, so that an outlet that refuses everything is not asked all the time.
const minBusy = time.Second

// serve offers a batch of pending messages of q to the outlet, in order, and reports whether q wants another turn.
func (m *Manager) serve(ctx context.Context, q *scheduled, buf []item) (again bool) {
	its := q.take(buf)
	m.ins.maint.Inc()
	for i := range its {
		if ctx.Err() != nil {
			q.putBack(its[i:], false)
			break
		}
		if pause := m.promote(ctx, q, its[i]); pause > 0 {
			q.putBack(its[i:], true)
			m.timer.insert(slot{q: q}, time.Duration(m.now())+pause)
			break
		}
	}
	clear(its)
	return q.more() && ctx.Err() == nil
}

// promote moves one message towards its ready queue (flows SQ-10 to SQ-18). A pause means that the queue has to wait
// and that nothing happened to the message.
func (m *Manager) promote(ctx context.Context, q *scheduled, it item) (pause time.Duration) {
	cfg := q.cfg.Load()
	if err := m.unhealthy(); err != nil { // SQ-10
		m.counted(q, -1)
		resp := mta.Internal(451, holdCode, "delivery is held: "+err.Error())
		m.note(ctx, it.m, newRecord(ctx, q.text, it.m, nil, mta.Delayed, it.m.Envelope().Recipients, resp))
		it.why |= whySpool | whyLogged
		m.requeue(ctx, q, it, back{resp: resp, increment: true})
		return 0
	}
	if cfg.MaxMessageRate != nil { // SQ-13
		wait := m.throttled(ctx, q, *cfg.MaxMessageRate)
		if wait > 0 && q.rated.Load() >= maxRated {
			return wait
		}
		if wait > 0 {
			m.counted(q, -1)
			m.ins.byRate.With(q.text).Inc()
			it.why |= whyRate
			m.requeue(ctx, q, it, back{delay: wait, hasDelay: true})
			return 0
		}
	}
	m.counted(q, -1)
	if m.throttledByPolicy(ctx, q, it) { // SQ-14
		return 0
	}
	if q.name.Domain == mta.NullQueue { // SQ-15
		m.conclude(ctx, q, &it, nil, nil)
		return 0
	}
	m.lend(ctx, q, it, cfg)
	return 0
}

// unhealthy returns why the spool refuses writes. A full disk holds nothing up: deliveries make room.
func (m *Manager) unhealthy() error {
	if m.o.DeliverWhenSpoolUnhealthy {
		return nil
	}
	for _, s := range m.spools {
		if err := s.Health(); err != nil && errors.Is(err, spool.ErrUnhealthy) {
			return err
		}
	}
	return nil
}

// throttled takes one message from the rate of q and returns how long to wait, 0 when it was taken. A keeper that fails
// costs a random wait up to 60 s.
func (m *Manager) throttled(ctx context.Context, q *scheduled, rate limit.Rate) time.Duration {
	res, err := m.o.Keeper.Take(ctx, q.rateKey(), rate, 1)
	switch {
	case err != nil:
		m.log.Warn("max_message_rate not known", "queue", q.text, "err", err)
		return max(shortDelay(), time.Second)
	case res.Throttled:
		return max(res.RetryAfter, resolution)
	}
	return 0
}

// throttledByPolicy asks throttle_insert_ready_queue and reports whether the message went back.
func (m *Manager) throttledByPolicy(ctx context.Context, q *scheduled, it item) bool {
	if !OnThrottleInsertReady.Handled(m.o.Bus) {
		return false
	}
	it.m.SetDue(time.Time{}) // only a handler can move it into the future
	if _, _, err := OnThrottleInsertReady.Call(ctx, m.o.Bus, it.m); err != nil {
		m.log.Error("message not promoted", "id", it.m.ID().String(), "queue", q.text, "err", err)
		it.why |= whyFailed
		m.requeue(ctx, q, it, back{increment: true}) // SQ-17
		return true
	}
	wait := it.m.Due().Sub(m.wall())
	if it.m.Due().IsZero() || wait <= 0 {
		return false
	}
	m.ins.byThrottle.With(q.text).Inc()
	it.why |= whyThrottle
	m.requeue(ctx, q, it, back{delay: wait, hasDelay: true})
	return true
}

// lend offers a ticket to the outlet and deals with its refusal.
func (m *Manager) lend(ctx context.Context, q *scheduled, it item, cfg *Config) {
	t := &Ticket{Message: it.m, Name: q.name, Queue: q.text, Config: cfg, Selector: &q.selector,
		lender: m, q: q, it: it}
	m.tickets.Add(1)
	m.lent.Add(1)
	err := m.offer(ctx, t)
	if err == nil {
		return // the message is no longer ours to look at (M1)
	}
	if t.done.Swap(true) { // Q3: the end of the ticket counts, not the error after it
		m.log.Error("outlet refused a ticket that it had ended", "queue", q.text, "err", err)
		return
	}
	m.home()
	m.refused(ctx, q, it, err)
}

// offer calls the outlet. A panic in there is a bug; it costs the message an attempt and nobody else anything.
func (m *Manager) offer(ctx context.Context, t *Ticket) (err error) {
	defer func() {
		if p := recover(); p != nil {
			m.log.Error("outlet panicked", "queue", t.Queue, "panic", p, "stack", string(debug.Stack()))
			err = errors.New("outlet panicked")
		}
	}()
	return m.o.Outlet.Take(ctx, t)
}

// home says that a ticket came back.
func (m *Manager) home() {
	m.lent.Add(-1)
	m.tickets.Done()
}

// refused puts a message back that the outlet did not take.
func (m *Manager) refused(ctx context.Context, q *scheduled, it item, err error) {
	var busy *Busy
	var lost *Unroutable
	switch {
	case ctx.Err() != nil: // shutting down: whatever the reason, nothing was tried
		m.enqueue(q, it)
	case errors.As(err, &busy): // SQ-16
		b := back{delay: max(busy.Delay, minBusy), hasDelay: busy.HasDelay, silent: true, extra: busy.Context}
		if busy.Error() == ReadyQueueWasFull {
			m.ins.byFull.With(q.text).Inc()
			it.why |= whyFull
		}
		m.requeue(ctx, q, it, b)
	case errors.As(err, &lost): // SQ-18
		r := newRecord(ctx, q.text, it.m, nil, mta.TransientFailure, it.m.Envelope().Recipients, lost.Response)
		r.Site = q.text
		m.note(ctx, it.m, r)
		it.why |= whyLogged | whyFailed
		m.requeue(ctx, q, it, back{resp: lost.Response, increment: true})
	default: // SQ-17
		m.log.Error("message not promoted", "id", it.m.ID().String(), "queue", q.text, "err", err)
		it.why |= whyFailed
		m.requeue(ctx, q, it, back{increment: true,
			resp: mta.Internal(451, holdCode, fmt.Sprintf("ready queue: %v", err))})
	}
}
