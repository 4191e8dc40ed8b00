package queue

import (
	"context"
	"fmt"
	"time"

	"example.com/svc/mta"
	"example.com/svc/spool"
)

// undoTime bounds how long a failed insert waits for its undoing.
const undoTime = 5 * time.Second

// Insert takes responsibility for ms (flows SQ-7, SM-43, SM-44). It names the queue of each and resolves it; stores all of
// them in one step; writes a Reception record for each; and returns without waiting for a delivery. Messages for the
// queue "null" are dropped.
// An [*mta.Refusal] says that the manager is shutting down. With an [*mta.InsertError] none of ms was accepted or
// stored, and they belong to the caller as before (Q1).
func (m *Manager) Insert(ctx context.Context, ms ...*mta.Message) error {
	if len(ms) == 0 {
		return nil
	}
	if !m.gate.enter() {
		return &mta.Refusal{Reason: "shutting down"}
	}
	defer m.gate.leave()
	defer m.ins.insert.ObserveSince(time.Now())
	var few [8]*scheduled
	qs, err := m.resolveAll(ctx, ms, few[:0])
	if err != nil {
		return err
	}
	keep := ms
	for _, q := range qs {
		if q.name.Domain == mta.NullQueue {
			keep, qs = m.dropNull(ctx, ms, qs)
			break
		}
	}
	m.early.add(keep)
	if err := m.o.Store.SaveAll(ctx, keep...); err != nil { // Q1, M2
		for _, q := range qs {
			m.unhold(q)
		}
		m.undo(ctx, keep)
		return &mta.InsertError{Err: fmt.Errorf("store %d messages: %w", len(keep), err)}
	}
	for i, msg := range keep {
		m.admit(qs[i])
		m.note(ctx, msg, receptionRecord(ctx, qs[i].text, msg))
	}
	for i, msg := range keep {
		m.placeNew(ctx, qs[i], item{m: msg, born: m.born(msg), why: whyReceived})
	}
	return nil
}

// undo removes what a save that ended early, because of its context, may yet store: the spool keeps the order of writes
// of one goroutine (Q1).
func (m *Manager) undo(ctx context.Context, ms []*mta.Message) {
	if ctx.Err() == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	var ids []spool.ID
	for _, msg := range ms {
		if !msg.Spooled() {
			ids = append(ids, msg.ID())
		}
	}
	if err := m.o.Store.RemoveIDs(ctx, ids); err != nil {
		m.log.Warn("messages of a failed insert may be found at the next start", "count", len(ids), "err", err)
	}
}

// resolveAll returns the queues of ms, each held.
func (m *Manager) resolveAll(ctx context.Context, ms []*mta.Message, qs []*scheduled) ([]*scheduled, error) {
	for i, msg := range ms {
		q, err := m.queueOf(ctx, msg)
		if err != nil {
			for _, q := range qs {
				m.unhold(q)
			}
			err = fmt.Errorf("queue of message %s: %w", msg.ID(), err)
			return nil, &mta.InsertError{Err: err, Failed: map[int]error{i: err}}
		}
		qs = append(qs, q)
	}
	return qs, nil
}

// dropNull releases the messages of the queue "null" (flows SM-43) and returns the others.
func (m *Manager) dropNull(ctx context.Context, ms []*mta.Message, qs []*scheduled) ([]*mta.Message, []*scheduled) {
	keep := make([]*mta.Message, 0, len(ms))
	kept := make([]*scheduled, 0, len(ms))
	for i, q := range qs {
		if q.name.Domain == mta.NullQueue {
			m.unhold(q)
			m.o.Store.Discard(ctx, ms[i])
			continue
		}
		keep, kept = append(keep, ms[i]), append(kept, q)
	}
	return keep, kept
}

// born returns when msg was received, on the manager's clock (flows SQ-23). A time in the future is now.
func (m *Manager) born(msg *mta.Message) int64 {
	return m.now() - int64(m.ageByWall(msg))
}

func (m *Manager) ageByWall(msg *mta.Message) time.Duration {
	created := msg.Created()
	if created.IsZero() {
		return 0
	}
	return max(m.wall().Sub(created), 0)
}

// placeNew puts a stored message where it belongs: in the wheel when it is due later, else among the pending ones.
func (m *Manager) placeNew(ctx context.Context, q *scheduled, it item) {
	now := m.wall()
	due := it.m.Due()
	if due.Before(now) {
		due = now
	}
	due = it.m.Scheduling().Adjust(due) // SQ-25
	if due.After(now) {
		if it.why == whyReceived && it.m.Scheduling() != nil {
			it.why |= whyScheduledForLater
		}
		m.schedule(ctx, q, it, now, due, "")
		return
	}
	m.account(ctx, &it)
	m.enqueue(q, it)
}

// schedule puts a message into the wheel (flows SQ-8): it is logged as Delayed unless another record explains it, saved
// if needed, and released from memory as the policy of the queue says.
func (m *Manager) schedule(ctx context.Context, q *scheduled, it item, now, due time.Time, extra string) {
	delay := due.Sub(now)
	if it.why != whyEnumerated && it.why&whyLogged == 0 {
		resp := delayedResponse(it.why.text(extra), delay, due)
		m.note(ctx, it.m, newRecord(ctx, q.text, it.m, nil, mta.Delayed, it.m.Envelope().Recipients, resp))
	}
	it.m.SetDue(due)
	m.shrink(ctx, it.m, q.cfg.Load().shrinkFor(delay))
	m.unaccount(&it)
	share(it.m, q)
	m.counted(q, 1)
	if it.why&whyRate != 0 {
		q.rated.Add(1)
	}
	m.timer.insert(slot{q: q, it: it}, time.Duration(m.now())+delay)
}

// share lets the recipients of msg use the queue's copy of their domain.
func share(msg *mta.Message, q *scheduled) {
	rs := msg.Envelope().Recipients
	for i := range rs {
		if rs[i].Domain == q.name.Domain {
			rs[i].Domain = q.name.Domain
		}
	}
}
