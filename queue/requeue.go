package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/svc/mta"
)

// back says how a message goes back to its scheduled queue.
type back struct {
	resp      mta.Response
	delay     time.Duration
	hasDelay  bool
	increment bool
	silent    bool   // requeue_message is not asked
	renamed   bool   // the recipients changed, so the queue may be another
	extra     string // a reason in words, besides the reasons of the item
}

// requeue puts a message back (flows SQ-19). The caller holds it.
func (m *Manager) requeue(ctx context.Context, q *scheduled, it item, b back) {
	if m.stopping() { // SD-3
		m.forget(context.WithoutCancel(ctx), q, it)
		return
	}
	if !b.silent && OnRequeue.Handled(m.o.Bus) {
		b.renamed = true
		if resp, rejected := m.askRequeue(ctx, q, &it, &b); rejected {
			r := newRecord(ctx, q.text, it.m, nil, mta.Bounce, it.m.Envelope().Recipients, resp)
			m.conclude(ctx, q, &it, []*mta.Record{r}, nil)
			return
		}
	}
	if b.renamed {
		if to := m.moved(ctx, q, it.m); to != nil {
			m.move(ctx, q, to, it, b.extra)
			return
		}
	}
	now, due, late := m.retryAt(q, &it, b)
	if late != "" {
		m.expire(ctx, q, &it, late)
		return
	}
	if due.After(now) {
		if !it.m.Due().IsZero() {
			m.ins.reinsertLate.ObserveDuration(m.late(it.m.Due()))
		}
		m.schedule(ctx, q, it, now, due, b.extra)
		return
	}
	it.why = whyDue
	m.enqueue(q, it)
}

// askRequeue raises requeue_message. rejected means that the message is to be bounced with resp.
func (m *Manager) askRequeue(ctx context.Context, q *scheduled, it *item, b *back) (resp mta.Response, rejected bool) {
	a := RequeueMessage{Message: it.m, Context: it.why.list(b.extra), Increment: b.increment}
	if b.resp.Code != 0 {
		a.Response = b.resp.String()
	}
	if b.hasDelay {
		a.Delay = &b.delay
	}
	_, _, err := OnRequeue.Call(ctx, m.o.Bus, a)
	if err == nil {
		return resp, false
	}
	var rej *mta.Rejection
	if errors.As(err, &rej) {
		return rej.Response(), true
	}
	m.log.Error("message keeps its queue", "id", it.m.ID().String(), "queue", q.text, "err", err)
	b.renamed = false
	return resp, false
}

// moved returns the queue that msg belongs to now, held; nil if that is q or cannot be had.
func (m *Manager) moved(ctx context.Context, q *scheduled, msg *mta.Message) *scheduled {
	name, err := msg.Queue(ctx)
	if err == nil && queueText(name) == q.text {
		return nil
	}
	var to *scheduled
	if err == nil {
		to, err = m.resolve(ctx, name)
	}
	if err != nil {
		m.log.Error("message keeps its queue", "id", msg.ID().String(), "queue", q.text, "err", err)
		return nil
	}
	if to == q { // two forms of one name
		m.unhold(to)
		return nil
	}
	return to
}

// move puts a message into another queue: the attempt counts, the normal delay does not (flows SQ-19).
func (m *Manager) move(ctx context.Context, from, to *scheduled, it item, extra string) {
	it.m.SetAttempts(it.m.Attempts() + 1)
	m.unhold(from)
	to.lastUse.Store(m.now())
	now := m.wall()
	if due := it.m.Scheduling().Adjust(now); due.After(now) {
		m.schedule(ctx, to, it, now, due, extra)
		return
	}
	if it.m.Dirty() { // the new queue is in the metadata
		m.shrink(ctx, it.m, NoShrink)
	}
	it.m.SetDue(time.Time{})
	m.enqueue(to, it)
}

// retryAt computes when a message is due again and counts the attempt (flows SQ-20 to SQ-22). late says why it expires
// instead; empty when it does not.
func (m *Manager) retryAt(q *scheduled, it *item, b back) (now, due time.Time, late string) {
	cfg := q.cfg.Load()
	now = m.wall()
	age := time.Duration(m.now() - it.born)
	delay := b.delay
	switch {
	case b.increment:
		n := it.m.Attempts()
		delay = max(cfg.backoff(n)+cfg.jitter(), 0)
		it.m.SetAttempts(n + 1)
	case !b.hasDelay:
		delay = shortDelay()
	}
	delay = min(max(delay, 0), maxBackoff)
	sched := it.m.Scheduling()
	due = sched.Adjust(now.Add(delay))
	switch {
	case sched != nil && !sched.Expires.IsZero():
		if !due.Before(sched.Expires) {
			late = fmt.Sprintf("would be tried next at %s, which is not before its expiry at %s",
				due.UTC().Format(time.RFC3339), sched.Expires.UTC().Format(time.RFC3339))
		}
	case b.increment && age+delay > time.Duration(cfg.MaxAge), // SQ-21
		!b.increment && age+due.Sub(now) >= time.Duration(cfg.MaxAge): // SQ-22
		late = fmt.Sprintf("would be tried next at an age of %s, the limit is %s",
			spanText(age+delay), spanText(time.Duration(cfg.MaxAge)))
	}
	return now, due, late
}

// expire writes the Expiration record and removes the message.
func (m *Manager) expire(ctx context.Context, q *scheduled, it *item, why string) {
	resp := mta.Internal(551, expiredCode, "message expired: it "+why)
	r := newRecord(ctx, q.text, it.m, nil, mta.Expiration, it.m.Envelope().Recipients, resp)
	r.Site = "localhost"
	m.conclude(ctx, q, it, []*mta.Record{r}, nil)
}
