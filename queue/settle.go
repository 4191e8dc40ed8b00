package queue

import (
	"context"

	"example.com/svc/mta"
)

var _ lender = (*Manager)(nil)

// recordType is the record of a disposition (flows SC-23).
func recordType(d mta.Disposition) mta.RecordType {
	switch d {
	case mta.Delivered:
		return mta.Delivery
	case mta.Failed:
		return mta.Bounce
	}
	return mta.TransientFailure
}

// finish is Ticket.Finish.
func (m *Manager) finish(ctx context.Context, t *Ticket, tmpl *mta.Record, rs []mta.Result) error {
	msg, it := t.Message, t.it
	rcpts := msg.Envelope().Recipients
	recs := make([]*mta.Record, 0, len(rs))
	var overall mta.Response
	gone := make([][]mta.Address, 0, len(rs))
	all, logged := false, false
	for i := range rs {
		r := &rs[i]
		whom := r.Recipients
		if len(whom) == 0 {
			whom = rcpts
		}
		recs = append(recs, newRecord(ctx, t.Queue, msg, tmpl, recordType(r.Disposition), whom, r.Response))
		switch {
		case r.Disposition == mta.Transient:
			overall, logged = r.Response, true
		case len(r.Recipients) == 0:
			all = true
		default:
			gone = append(gone, r.Recipients)
		}
	}
	left := without(rcpts, gone)
	if all || len(left) == 0 {
		m.conclude(ctx, t.q, &it, recs, t)
		return nil
	}
	for _, r := range recs {
		m.note(ctx, msg, r)
	}
	b := back{resp: overall, increment: true}
	if logged {
		it.why |= whyLogged
	}
	if len(left) != len(rcpts) {
		msg.SetRecipients(left) // SC-25
		b.renamed = true
		m.shrink(ctx, msg, NoShrink)
	}
	m.requeue(ctx, t.q, it, b)
	m.home()
	return nil
}

// noteAttempt is Ticket.Note.
func (m *Manager) noteAttempt(ctx context.Context, t *Ticket, tmpl *mta.Record, r mta.Result) {
	whom := r.Recipients
	if len(whom) == 0 {
		whom = t.Message.Envelope().Recipients
	}
	m.note(ctx, t.Message, newRecord(ctx, t.Queue, t.Message, tmpl, recordType(r.Disposition), whom, r.Response))
}

// without returns the addresses of rs that are in none of gone; rs itself is not changed.
func without(rs []mta.Address, gone [][]mta.Address) []mta.Address {
	n := 0
	for _, g := range gone {
		n += len(g)
	}
	if n == 0 {
		return rs
	}
	if len(rs) == 1 && n == 1 {
		for _, g := range gone {
			if len(g) == 1 && g[0] == rs[0] {
				return nil
			}
		}
		return rs
	}
	set := make(map[mta.Address]struct{}, n)
	for _, g := range gone {
		for _, a := range g {
			set[a] = struct{}{}
		}
	}
	var left []mta.Address
	for _, a := range rs {
		if _, ok := set[a]; !ok {
			left = append(left, a)
		}
	}
	return left
}

// giveBack is Ticket.Return.
func (m *Manager) giveBack(ctx context.Context, t *Ticket, r Return) error {
	defer m.home()
	it := t.it
	b := back{delay: r.Delay, hasDelay: r.HasDelay, increment: r.Increment, silent: silent(r.Context), extra: r.Context}
	if r.Response != nil {
		b.resp = *r.Response
		rec := newRecord(ctx, t.Queue, t.Message, r.Record, mta.TransientFailure,
			t.Message.Envelope().Recipients, b.resp)
		m.note(ctx, t.Message, rec)
		it.why |= whyLogged
	}
	if r.Context == ReadyQueueWasFull {
		m.ins.byFull.With(t.Queue).Inc()
	}
	m.requeue(ctx, t.q, it, b)
	return nil
}

// corrupt is Ticket.Corrupt.
func (m *Manager) corrupt(ctx context.Context, t *Ticket, cause error) error {
	msg := t.Message
	r := newRecord(ctx, t.Queue, msg, nil, mta.Bounce, msg.Envelope().Recipients, corruptResponse(cause))
	it := t.it
	if m.o.Store.Quarantine(context.WithoutCancel(ctx), msg.ID(), cause) != nil {
		m.forget(ctx, t.q, it) // it is tried again at the next start; removing it here would lose it
		m.home()
		return nil
	}
	m.conclude(ctx, t.q, &it, []*mta.Record{r}, t)
	return nil
}

// twice is told of a second end of a ticket (Q3).
func (m *Manager) twice(t *Ticket, op string) {
	m.log.Error("ticket was ended before", "op", op, "id", t.Message.ID().String(), "queue", t.Queue)
}

// conclude writes the last records of a message and hands its removal to the finisher. Records that are not accepted go
// along: the message stays in the spool until they are (Q2). Nobody else holds the message; t is its ticket, if any.
func (m *Manager) conclude(ctx context.Context, q *scheduled, it *item, recs []*mta.Record, t *Ticket) {
	ctx = context.WithoutCancel(ctx) // what happened has to be written down, whoever has lost patience
	r := removal{id: it.m.ID(), q: q, lent: t != nil}
	for i, rec := range recs {
		if err := m.o.Recorder.Record(ctx, it.m, rec); err != nil {
			m.log.Error("record not accepted yet", "type", string(rec.Type), "id", r.id.String(), "err", err)
			r.recs, r.msg = recs[i:], it.m
			break
		}
	}
	m.unaccount(it)
	if r.msg == nil {
		it.m.Release()
	}
	m.fin.in <- r
}
