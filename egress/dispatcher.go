package egress

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gofrs/uuid/v5"

	"example.com/svc/egress/route"
	"example.com/svc/mta"
	"example.com/svc/mta/limit"
	"example.com/svc/queue"
)

// Phase is what a session is doing (flows RQ-18).
type Phase uint32

// The phases.
const (
	Starting Phase = iota
	AcquiringLease
	Idle
	ConnectionRateThrottled
	MessageRateThrottled
	AttemptingConnection
	DeliveringMessage
	Closing
)

var phaseText = [...]string{"Starting", "AcquiringLease", "Idle", "ConnectionRateThrottled", "MessageRateThrottled",
	"AttemptingConnection", "DeliveringMessage", "Closing"}

// String returns the name.
func (p Phase) String() string {
	if int(p) < len(phaseText) {
		return phaseText[p]
	}
	return "Unknown"
}

// dispatcher is one session of a ready queue: a goroutine with at most one connection.
type dispatcher struct {
	q      *ready
	ctx    context.Context
	cancel context.CancelCauseFunc
	wake   chan *queue.Ticket // has room for the one ticket an idle dispatcher is handed
	timer  *time.Timer        // stopped unless waiting
	lease  limit.Lease
	id     string // session id of records

	step  atomic.Uint32 // Phase
	since atomic.Int64  // when the phase began, Unix nanoseconds

	ticket *queue.Ticket // in hand
	// The plan that is worked off (flows SC-26): targets from at on are left; sent says that a message was sent on it.
	targets []route.Target
	at      int
	planned bool
	sent    bool
	target  route.Target
	clear   bool // without TLS on this plan, since it broke (flows TL-9)

	carrier   Carrier
	info      Info
	counted   *providerMetrics // that the connection is counted under
	delivered int              // messages tried over this connection
	rested    bool             // the connection was idle
	out       Outcome
	work      work
}

func newDispatcher(q *ready) *dispatcher {
	d := &dispatcher{q: q, wake: make(chan *queue.Ticket, 1), timer: time.NewTimer(time.Hour)}
	d.timer.Stop()
	d.ctx, d.cancel = context.WithCancelCause(q.m.work)
	d.enter(Starting)
	return d
}

func (d *dispatcher) enter(p Phase) {
	d.since.Store(time.Now().UnixNano())
	d.step.Store(uint32(p))
}

func (d *dispatcher) phase() Phase { return Phase(d.step.Load()) }

// stuck reports whether d has been at a step that has to make progress for longer than limit.
func (d *dispatcher) stuck(now time.Time, limit time.Duration) bool {
	switch d.phase() {
	case AttemptingConnection, DeliveringMessage, AcquiringLease, Closing:
		return now.UnixNano()-d.since.Load() > int64(limit)
	}
	return false
}

// abort gives up what d does. False when it was done before.
func (d *dispatcher) abort(cause error) bool {
	first := d.ctx.Err() == nil
	d.cancel(cause)
	return first
}

// run is the life of a dispatcher (flows RQ-5 to RQ-10).
func (d *dispatcher) run() {
	q := d.q
	if !q.join(d) {
		d.cancel(nil)
		return
	}
	defer func() {
		if p := recover(); p != nil {
			q.m.log.Error("panic in a session", "queue", q.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			d.internalError("internal error")
		}
		d.disconnect()
		if d.lease != nil {
			d.lease.Release()
		}
		d.cancel(nil)
		q.leave(d, time.Now())
	}()
	if !d.acquire() {
		return
	}
	for d.next() && d.connect() && d.admit() {
		d.deliver()
		if d.carrier == nil && d.planned && d.at >= len(d.targets) {
			return // the plan is used up (flows SC-26)
		}
		if d.carrier != nil && d.delivered >= q.state.Load().c.MaxDeliveries {
			return // flows RQ-8; leave has a new one opened if messages wait
		}
	}
}

// acquire leases every limit of the path (flows RQ-5).
func (d *dispatcher) acquire() bool {
	q := d.q
	d.enter(AcquiringLease)
	st := q.state.Load()
	lease, key, ok, err := limit.LeaseAll(d.ctx, q.m.o.Keeper, st.limits, st.ttl)
	if err != nil {
		q.m.log.Warn("no lease for a connection", "queue", q.name, "limit", key, "err", err)
	}
	if err != nil || !ok {
		q.mu.Lock()
		q.limited = true
		q.mu.Unlock()
		q.m.needsAttention(q)
		return false
	}
	d.lease = lease
	return true
}

// next takes a ticket in hand, waiting for one while the connection may idle (flows RQ-7, RQ-10).
func (d *dispatcher) next() bool {
	q := d.q
	if d.q.m.stop.Err() != nil {
		return false
	}
	var parked bool
	if d.ticket, parked = q.take(d, d.carrier != nil); !parked {
		return d.ticket != nil
	}
	d.enter(Idle)
	d.rested = true
	d.timer.Reset(q.state.Load().c.IdleTimeout.D())
	select {
	case d.ticket = <-d.wake:
		d.timer.Stop()
		q.awake()
	case <-d.timer.C:
		d.ticket = q.unpark(d)
	case <-d.ctx.Done():
		d.ticket = q.unpark(d)
	case <-q.m.stop.Done():
		d.ticket = q.unpark(d)
	}
	if d.ticket != nil && q.m.stop.Err() != nil {
		d.giveBack(queue.Return{Context: contextShutdown, HasDelay: true})
	}
	return d.ticket != nil
}

// giveBack returns the ticket in hand.
func (d *dispatcher) giveBack(r queue.Return) {
	t := d.ticket
	d.ticket = nil
	_ = t.Return(d.q.m.work, r) // its only error is a ticket that ended before, which cannot be here (E2)
}

// internalError returns the ticket in hand after a failure of ours (flows RQ-13).
func (d *dispatcher) internalError(text string) {
	if d.ticket == nil {
		return
	}
	r := mta.Internal(400, mta.EnhancedCode{}, text)
	d.count(d.ticket, mta.Transient, len(d.ticket.Message.Envelope().Recipients))
	d.giveBack(queue.Return{Increment: true, Response: &r, Record: d.record(d.ticket), Context: queue.LoggedTransientFailure})
}

// interrupted returns the ticket in hand when the session was aborted.
func (d *dispatcher) interrupted() {
	reason := contextShutdown
	if context.Cause(d.ctx) == errWatchdog {
		reason = contextWatchdog
	}
	d.giveBack(queue.Return{Context: reason, HasDelay: reason == contextShutdown})
}

// sleep waits for w. False when the session or the service ends first.
func (d *dispatcher) sleep(p Phase, w time.Duration) bool {
	d.enter(p)
	d.timer.Reset(w)
	select {
	case <-d.timer.C:
		return true
	case <-d.ctx.Done():
	case <-d.q.m.stop.Done():
	}
	d.timer.Stop()
	return false
}

// admit waits for the message rates (flows RQ-11). When the wait is too long, everything that waits goes back.
func (d *dispatcher) admit() bool {
	q := d.q
	for {
		st := q.state.Load()
		if len(st.rates) == 0 {
			return true
		}
		res, key, err := limit.TakeAll(d.ctx, q.m.o.Keeper, st.rates)
		if err != nil {
			q.m.log.Warn("message rate not known", "queue", q.name, "rate", key, "err", err)
			d.internalError("message rate not known")
			return false
		}
		if !res.Throttled {
			return true
		}
		if res.Wait >= st.c.IdleTimeout.D() {
			d.delayAll(queue.Return{Context: queue.MessageRateThrottle, Delay: res.RetryAfter, HasDelay: true})
			return false
		}
		if !d.sleep(MessageRateThrottled, res.Wait) {
			d.interrupted()
			return false
		}
	}
}

// delayAll returns the ticket in hand and all that wait.
func (d *dispatcher) delayAll(r queue.Return) {
	rest := d.q.drain(0)
	d.giveBack(r)
	giveBack(d.q.m.work, rest, r)
}

// sessionID is a random UUID, made when first needed.
func (d *dispatcher) sessionID() string {
	if d.id == "" {
		var u uuid.UUID
		_, _ = rand.Read(u[:]) // never fails
		u.SetVersion(uuid.V4)
		u.SetVariant(uuid.VariantRFC9562)
		d.id = u.String()
	}
	return d.id
}
