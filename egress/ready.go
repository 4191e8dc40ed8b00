package egress

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"example.com/svc/egress/route"
	"example.com/svc/queue"
)

// readyKey names a ready queue (flows QN-3).
type readyKey struct {
	source, site, protocol string
}

func (k readyKey) String() string { return k.source + "->" + k.site + "@" + k.protocol }

// ready is one ready queue: tickets that wait, first come first served, and the dispatchers that take them.
type ready struct {
	m      *Manager
	key    readyKey
	name   string
	opener Opener

	state  atomic.Pointer[pathState]
	source atomic.Pointer[Source]
	plan   atomic.Pointer[route.Plan]
	// brokenTLS is until when TLS counts as broken, in Unix nanoseconds (flows TL-8).
	brokenTLS atomic.Int64
	// failures counts connection plans that failed in a row (flows RQ-12).
	failures   atomic.Int64
	refreshing atomic.Bool
	metrics    *serviceMetrics

	mu          sync.Mutex // guards the fields below
	waiting     ring
	reserved    int
	domain      string // routing domain of the last ticket, for refreshing
	idle        []*dispatcher
	waking      int // dispatchers that were handed a ticket and have not looked yet
	dispatchers map[*dispatcher]struct{}
	opening     int  // dispatchers that are started and have not joined
	limited     bool // a lease was refused; opens again at the next tick
	closed      bool // shutdown: nothing may enter
	retired     bool // removed for lack of use
	lastUse     time.Time
	providers   []*providerMetrics // by pool, few
}

// verdict is what became of an insert.
type verdict uint8

const (
	inserted verdict = iota
	full
	gone   // retired: look it up again
	ending // shutdown
)

// insert puts t at the end, or hands it to an idle dispatcher.
func (q *ready) insert(t *queue.Ticket, now time.Time, reserved bool) verdict {
	st := q.state.Load()
	q.mu.Lock()
	switch {
	case q.closed:
		q.mu.Unlock()
		return ending
	case q.retired:
		q.mu.Unlock()
		return gone
	case !reserved && q.waiting.n+q.reserved >= st.c.MaxReady:
		q.mu.Unlock()
		return full
	}
	if reserved {
		q.reserved--
	}
	q.lastUse = now
	q.domain = t.Name.Routing()
	q.enter(t)
	start := 0
	if st.c.MaintainerWakeup == WakeAggressive || len(q.dispatchers)+q.opening-len(q.idle) < q.ideal(st) {
		start = q.maintain(st)
	}
	q.mu.Unlock()
	q.open(start)
	return inserted
}

// enter puts t at the end. Locked.
func (q *ready) enter(t *queue.Ticket) {
	q.waiting.push(t)
	q.count(t, 1)
}

// count moves the gauges for a ticket that enters or leaves. Locked.
func (q *ready) count(t *queue.Ticket, n float64) {
	q.metrics.ready.Add(n)
	q.metrics.rollup.ready.Add(n)
	p := q.provider(t.Config.EgressPool)
	p.queuedProvider.Add(n)
	p.queuedPool.Add(n)
}

// provider returns the instruments for tickets of a pool. Locked.
func (q *ready) provider(pool string) *providerMetrics {
	for _, p := range q.providers {
		if p.pool == pool {
			return p
		}
	}
	label := q.state.Load().label
	if len(q.providers) > 0 {
		label = q.providers[0].provider // stays, so that what was added is taken away again
	}
	p := q.m.metrics.providerOf(label, q.key.source, pool)
	q.m.metrics.use(label, q.key.source, pool)
	q.providers = append(q.providers, p)
	return p
}

// reserve keeps a slot for an insert that is to come (flows SS-5).
func (q *ready) reserve() verdict {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ending
	case q.retired:
		return gone
	case q.waiting.n+q.reserved >= q.state.Load().c.MaxReady:
		return full
	}
	q.reserved++
	return inserted
}

func (q *ready) unreserve() {
	q.mu.Lock()
	q.reserved--
	q.mu.Unlock()
}

// ideal is how many dispatchers there should be. Locked.
func (q *ready) ideal(st *pathState) int {
	return idealConnections(q.waiting.n, st.c.ConnectionLimit.N)
}

// maintain hands waiting tickets to idle dispatchers and says how many more are to be opened; they are already counted
// and have to be opened by open once the lock is released. Locked.
func (q *ready) maintain(st *pathState) (start int) {
	q.m.metrics.runs.Inc()
	for len(q.idle) > 0 && q.waiting.n > 0 {
		if q.waking > 0 && st.c.DispatcherWakeup == WakeRelaxed {
			return 0 // the one that is waking goes on with the others
		}
		d := q.idle[len(q.idle)-1] // the warmest
		q.idle = q.idle[:len(q.idle)-1]
		q.waking++
		d.wake <- q.leaveFront() // has room: an idle dispatcher was handed nothing
	}
	if q.limited || q.closed {
		return 0
	}
	start = max(0, q.ideal(st)-len(q.dispatchers)-q.opening)
	q.opening += start
	return start
}

// leaveFront takes the first ticket. Locked.
func (q *ready) leaveFront() *queue.Ticket {
	t := q.waiting.pop()
	q.count(t, -1)
	return t
}

// open opens n dispatchers.
func (q *ready) open(n int) {
	for i := range n {
		if !q.m.spawn(q) {
			q.mu.Lock()
			q.opening -= n - i
			q.mu.Unlock()
			return
		}
	}
}

// join adds d unless there is nothing left to do for it.
func (q *ready) join(d *dispatcher) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.opening--
	if q.closed || len(q.dispatchers) >= q.ideal(q.state.Load()) {
		return false
	}
	q.dispatchers[d] = struct{}{}
	return true
}

// leave removes d and has the others, or a new one, go on with what waits.
func (q *ready) leave(d *dispatcher, now time.Time) {
	q.mu.Lock()
	delete(q.dispatchers, d)
	q.lastUse = now
	start := q.maintain(q.state.Load())
	q.mu.Unlock()
	q.open(start)
}

// kick looks after the queue.
func (q *ready) kick() {
	q.mu.Lock()
	q.limited = false
	start := q.maintain(q.state.Load())
	q.mu.Unlock()
	q.open(start)
}

// take returns the next ticket, or nil. With park d may then be idle, until a ticket arrives in its channel.
func (q *ready) take(d *dispatcher, park bool) (t *queue.Ticket, parked bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, false
	case q.waiting.n > 0:
		return q.leaveFront(), false
	case park:
		q.idle = append(q.idle, d)
	}
	return nil, park
}

// unpark ends the idling of d. When it was handed a ticket meanwhile, that is returned.
func (q *ready) unpark(d *dispatcher) *queue.Ticket {
	q.mu.Lock()
	for i, o := range q.idle {
		if o == d {
			q.idle = append(q.idle[:i], q.idle[i+1:]...)
			q.mu.Unlock()
			return nil
		}
	}
	q.mu.Unlock()
	t := <-d.wake // handed under the lock, so it is there
	q.awake()
	return t
}

// awake notes that a dispatcher has its ticket, and has the next one woken.
func (q *ready) awake() {
	q.mu.Lock()
	q.waking--
	if len(q.idle) == 0 || q.waiting.n == 0 {
		q.mu.Unlock()
		return
	}
	start := q.maintain(q.state.Load())
	q.mu.Unlock()
	q.open(start)
}

// putBack puts t in front again. False when the queue is closed.
func (q *ready) putBack(t *queue.Ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.waiting.unpop(t)
	q.count(t, 1)
	return true
}

// drain takes out tickets from the end until keep are left, and returns them in order.
func (q *ready) drain(keep int) []*queue.Ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.waiting.n - keep
	if n <= 0 {
		return nil
	}
	ts := make([]*queue.Ticket, n)
	for i := n - 1; i >= 0; i-- {
		ts[i] = q.waiting.popBack()
		q.count(ts[i], -1)
	}
	return ts
}

// giveBack returns tickets that were not attempted.
func giveBack(ctx context.Context, ts []*queue.Ticket, r queue.Return) {
	for _, t := range ts {
		_ = t.Return(ctx, r) // its only error is a ticket that ended before, which cannot be here (E2)
	}
}
