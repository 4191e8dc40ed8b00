package queue

import (
	"sync"
	"sync/atomic"
	"time"

	"example.com/svc/mta"
)

// item is a message as a scheduled queue holds it.
type item struct {
	m *mta.Message
	// born is when the message was received, on the manager's clock; the age counts from it, so that a jump of the wall
	// clock ages nothing.
	born int64
	// resident is what the body counts in the budget of bodies in memory.
	resident uint32
	why      reasons
}

// slot is what the wheel keeps: a message of a queue or, without a message, the end of a pause of the queue.
type slot struct {
	q  *scheduled
	it item
}

// scheduled is one scheduled queue. Its messages are in the wheel, pending, with a worker, or lent.
type scheduled struct {
	// name and text are shared by all records of the queue.
	name mta.QueueName
	text string

	cfg      atomic.Pointer[Config]
	selector Slot

	// held counts the messages of the queue wherever they are, and those on their way in: a queue that holds something
	// is not reaped. It grows from 0 only under the lock of the shard.
	held      atomic.Int64
	scheduled atomic.Int64 // in the wheel or pending
	rated     atomic.Int64 // in the wheel because of max_message_rate
	lastUse   atomic.Int64 // manager's clock
	fetched   atomic.Int64 // manager's clock, when cfg was asked for
	epoch     atomic.Uint64
	warned    atomic.Bool // about a changed strategy

	mu      sync.Mutex // guards what follows; the last in the lock order (L1)
	pending fifo
	listed  bool // in the run list or with a worker
	paused  bool // the end of a pause is in the wheel
}

// idle reports whether q may be reaped (flows SQ-6).
func (q *scheduled) idle(now int64) bool {
	return q.held.Load() == 0 && now-q.lastUse.Load() >= int64(time.Duration(q.cfg.Load().ReapInterval))
}

// rateKey is the key of max_message_rate (flows SQ-13).
func (q *scheduled) rateKey() string { return "schedq-" + q.text + "-message-rate" }

// admit counts a message for which q is held already.
func (m *Manager) admit(q *scheduled) {
	m.held.Add(1)
	q.lastUse.Store(m.now())
}

// unhold gives up a hold without a message.
func (m *Manager) unhold(q *scheduled) {
	q.lastUse.Store(m.now())
	q.held.Add(-1)
}

// release says that a message left q for good.
func (m *Manager) release(q *scheduled) {
	m.unhold(q)
	m.held.Add(-1)
}

// counted moves the number of scheduled messages.
func (m *Manager) counted(q *scheduled, n int64) {
	q.scheduled.Add(n)
	m.scheduled.Add(n)
}

// enqueue makes it pending: it is offered to the outlet next.
func (m *Manager) enqueue(q *scheduled, it item) {
	m.counted(q, 1)
	m.pend(q, it)
}

// pend is enqueue for a message that is counted already.
func (m *Manager) pend(q *scheduled, it item) {
	q.mu.Lock()
	q.pending.push(it)
	kick := !q.listed && !q.paused
	if kick {
		q.listed = true
	}
	q.mu.Unlock()
	if kick {
		m.run.push(q)
	}
}

// putBack makes its the first pending ones again. They are counted still.
func (q *scheduled) putBack(its []item, pause bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pending.unshift(its)
	if pause {
		q.paused = true
	}
}

// resume ends the pause of q.
func (m *Manager) resume(q *scheduled) {
	q.mu.Lock()
	q.paused = false
	kick := !q.listed && q.pending.n > 0
	if kick {
		q.listed = true
	}
	q.mu.Unlock()
	if kick {
		m.run.push(q)
	}
}

// take moves pending messages to buf.
func (q *scheduled) take(buf []item) []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending.take(buf[:0], cap(buf))
}

// more ends the turn of a worker and reports whether q wants another.
func (q *scheduled) more() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listed = q.pending.n > 0 && !q.paused
	return q.listed
}
