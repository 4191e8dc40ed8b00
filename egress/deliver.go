package egress

import (
	"errors"
	"time"

	"example.com/svc/mta"
	"example.com/svc/queue"
	"example.com/svc/spool"
)

// work is the message in hand: what is left of its recipients and what became of the others. It is reused.
type work struct {
	pending []mta.Address // not tried yet
	again   []mta.Address // refused as too many, to be tried once more (flows SC-24)
	second  bool          // again is being worked off
	done    []Reply       // answers that count
}

// deliver sends the message in hand to all its recipients and finishes its ticket.
func (d *dispatcher) deliver() {
	t := d.ticket
	d.enter(DeliveringMessage)
	if err := d.lease.Extend(d.ctx); err != nil { // flows RQ-6
		d.q.m.log.Warn("lease of a connection lost", "queue", d.q.name, "err", err)
		d.disconnect()
		d.at = len(d.targets)
		d.toFront()
		return
	}
	if _, err := t.Message.Data(d.ctx); err != nil {
		d.unreadable(err)
		return
	}
	rs := t.Message.Envelope().Recipients
	if len(rs) == 0 {
		d.ticket = nil
		d.finish(t, []mta.Result{{Disposition: mta.Failed, Response: mta.Internal(554,
			mta.EnhancedCode{Class: 5, Subject: 1, Detail: 3}, "the message has no recipients")}})
		return
	}
	d.delivered++
	d.sent = true
	w := &d.work
	w.pending, w.again, w.second, w.done = rs, w.again[:0], false, w.done[:0]
	for d.batch() {
		d.enter(DeliveringMessage)
	}
	d.settle(len(rs))
}

// unreadable ends the ticket of a message whose data cannot be had.
func (d *dispatcher) unreadable(err error) {
	var corrupt *spool.CorruptError
	if errors.As(err, &corrupt) || errors.Is(err, spool.ErrNotFound) {
		t := d.ticket
		d.ticket = nil
		_ = t.Corrupt(d.q.m.work, err) // its only error is a ticket that ended before (E2)
		return
	}
	if d.ctx.Err() != nil {
		d.interrupted()
		return
	}
	d.q.m.log.Error("message data not readable", "id", d.ticket.ID().String(), "err", err)
	d.internalError("message data not readable")
}

// batch tries the next recipients over the connection (flows SC-14). False when nothing is left or can be tried.
func (d *dispatcher) batch() bool {
	w := &d.work
	if len(w.pending) == 0 {
		if len(w.again) == 0 || w.second {
			return false
		}
		w.pending, w.second = append([]mta.Address(nil), w.again...), true
		w.again = w.again[:0]
	}
	c := d.q.state.Load().c
	n := min(len(w.pending), c.MaxRecipients)
	rs := w.pending[:n:n]
	d.out.Reset()
	start := time.Now()
	err := d.carrier.Deliver(d.ctx, d.ticket.Message, rs, &d.out)
	d.q.metrics.rollup.latency.ObserveSince(start)
	if err != nil {
		d.q.m.log.Error("delivery failed within", "queue", d.q.name, "id", d.ticket.ID().String(), "err", err)
		d.keep(Reply{Recipients: w.pending, Response: mta.Internal(400, mta.EnhancedCode{}, "internal error in delivery")})
		w.pending = nil
		d.broken()
		return false
	}
	w.pending = w.pending[n:]
	for _, r := range d.out.Replies {
		d.judge(r)
	}
	if !d.out.Broken {
		return true
	}
	return d.afterBreak(c)
}

// keep adds an answer that counts, to one that is equal if there is any (flows SC-28).
func (d *dispatcher) keep(r Reply) {
	w := &d.work
	for i := range w.done {
		o := &w.done[i]
		if o.Response.Code == r.Response.Code && o.Response.Enhanced == r.Response.Enhanced &&
			o.Response.Content == r.Response.Content {
			o.Recipients = append(o.Recipients[:len(o.Recipients):len(o.Recipients)], r.Recipients...)
			return
		}
	}
	w.done = append(w.done, r)
}

// judge applies the policy to one answer, and keeps it or has its recipients tried again.
func (d *dispatcher) judge(r Reply) {
	if r.Stage != StageLocal && r.Response.Code != 250 {
		d.rewrite(&r.Response)
	}
	w := &d.work
	if r.Stage == StageRcpt && r.Index > 0 && !w.second && !d.out.Broken && d.q.m.tooMany(r.Response) {
		w.again = append(w.again, r.Recipients...) // flows SC-24
		return
	}
	d.keep(r)
}

// afterBreak deals with what was not tried when the connection broke, and says whether to go on with the same message
// on the next host (flows SC-26, SC-27).
func (d *dispatcher) afterBreak(c *PathConfig) bool {
	w := &d.work
	if d.out.Transport && c.TryNextHost && d.at < len(d.targets) && !d.stopped() {
		left := d.untried() // while the record still shows the host that failed
		d.broken()
		if d.reopen() {
			w.pending = left
			return len(left) > 0
		}
		w.pending, w.again = nil, w.again[:0]
		if len(left) > 0 {
			d.keep(Reply{Recipients: left, Response: mta.Internal(400, mta.EnhancedCode{}, "failed to connect to any other host")})
		}
		return false
	}
	d.broken()
	left := append(w.pending[:len(w.pending):len(w.pending)], w.again...)
	w.pending, w.again = nil, w.again[:0]
	if len(left) > 0 {
		d.keep(Reply{Recipients: left, Response: d.breakResponse()})
	}
	return false
}

// breakResponse is the answer for recipients whose turn did not come: the last one that was given, if it is transient.
func (d *dispatcher) breakResponse() mta.Response {
	if n := len(d.out.Replies); n > 0 {
		if r := d.out.Replies[n-1].Response; r.Code >= 400 && r.Code < 500 {
			return r
		}
	}
	return mta.Internal(421, mta.EnhancedCode{Class: 4, Subject: 4, Detail: 2}, "the connection ended before this recipient's turn")
}

// reopen connects to the targets that are left for the message in hand.
func (d *dispatcher) reopen() bool {
	for d.at < len(d.targets) {
		d.target = d.targets[d.at]
		d.at++
		if err := d.open(); err == nil {
			return true
		}
		if d.stopped() {
			return false
		}
	}
	return false
}

// untried takes the recipients with transient answers of this transaction out for another try, writes the record of
// the failed attempt, and returns them with those whose turn did not come.
func (d *dispatcher) untried() []mta.Address {
	w := &d.work
	var left []mta.Address
	kept := w.done[:0]
	for _, r := range w.done {
		if r.Stage != StageRcpt && d.q.m.disposition(r) == mta.Transient {
			rs := append([]mta.Address(nil), r.Recipients...)
			d.ticket.Note(d.q.m.work, d.record(d.ticket), mta.Result{Recipients: rs, Response: r.Response, Disposition: mta.Transient})
			d.count(d.ticket, mta.Transient, len(rs))
			left = append(left, rs...)
			continue
		}
		kept = append(kept, r)
	}
	w.done = kept
	left = append(left, w.pending...)
	return append(left, w.again...)
}

// settle finishes the ticket with what was answered.
func (d *dispatcher) settle(recipients int) {
	t, w := d.ticket, &d.work
	if d.ctx.Err() != nil && !d.anyFinal() {
		d.interrupted() // shutdown or watchdog: not an attempt
		return
	}
	d.ticket = nil
	rs := make([]mta.Result, len(w.done))
	for i, r := range w.done {
		rs[i] = mta.Result{Response: r.Response, Disposition: d.q.m.disposition(r)}
		n := len(r.Recipients)
		if len(rs) > 1 || n != recipients {
			rs[i].Recipients = append([]mta.Address(nil), r.Recipients...) // the queue changes the envelope
		}
		d.count(t, rs[i].Disposition, n)
	}
	d.hand(t, rs)
	clear(w.done)
	w.pending, w.done = nil, w.done[:0]
}

// anyFinal reports whether some recipients were delivered or failed.
func (d *dispatcher) anyFinal() bool {
	for _, r := range d.work.done {
		if d.q.m.disposition(r) != mta.Transient {
			return true
		}
	}
	return false
}

// finish ends t with results for all its recipients, as bulk operations do.
func (d *dispatcher) finish(t *queue.Ticket, rs []mta.Result) {
	d.count(t, rs[0].Disposition, 1) // flows MT-5: bulk operations count messages
	d.hand(t, rs)
}

// hand ends t.
func (d *dispatcher) hand(t *queue.Ticket, rs []mta.Result) {
	if err := t.Finish(d.q.m.work, d.record(t), rs); err != nil {
		d.q.m.log.Error("message not finished", "queue", d.q.name, "err", err)
	}
}

// record is the template of the records about t.
func (d *dispatcher) record(t *queue.Ticket) *mta.Record {
	return &mta.Record{
		Site: d.q.name, EgressPool: t.Config.EgressPool, EgressSource: d.q.key.source,
		Peer: d.info.Peer, SourceAddress: d.info.SourceAddress, TLS: d.info.TLS, DeliveryProtocol: d.info.Protocol,
		Provider: d.q.state.Load().c.ProviderName, SessionID: d.sessionID(),
	}
}

// count counts n outcomes of a message.
func (d *dispatcher) count(t *queue.Ticket, disp mta.Disposition, n int) {
	q := d.q
	q.metrics.outcomes[disp].Add(n)
	q.metrics.rollup.outcomes[disp].Add(n)
	p := d.counted
	if p == nil || p.pool != t.Config.EgressPool {
		q.mu.Lock()
		p = q.provider(t.Config.EgressPool)
		q.mu.Unlock()
	}
	for _, c := range p.outcomes[disp] {
		c.Add(n)
	}
}
