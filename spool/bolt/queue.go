package bolt

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"example.com/svc/spool"
)

// States of an op. The writer takes it, or the caller abandons it, never both.
const (
	opWaiting = iota
	opTaken
	opAbandoned
)

// entry is one change: a frame to store under key, or nil to remove key. When the
// value is borrowed from the caller, frame holds the header and rest the value.
type entry struct {
	key   [16]byte
	frame *[]byte
	rest  []byte
}

// size is the length of the whole frame.
func (e *entry) size() int { return len(*e.frame) + len(e.rest) }

// op is what one caller waits for.
type op struct {
	entries []entry
	one     [1]entry // the array behind entries for single changes
	bytes   int
	puts    bool
	// move, when set, is done instead of the entries. Its result concerns this
	// op only, whereas an error of the transaction concerns the whole batch.
	move   func(values, quarantine *bbolt.Bucket) error
	result error

	// next, when set, is queued at to once this op is done; its done channel is
	// what the caller waits for.
	next *op
	to   *Spool

	state atomic.Int32
	done  chan error // capacity 1
}

var opPool = sync.Pool{New: func() any { return &op{done: make(chan error, 1)} }}

func newOp() *op { return opPool.Get().(*op) }

// recycle gives o back once nobody else refers to it.
func (o *op) recycle() {
	clear(o.entries)
	o.entries, o.one, o.bytes, o.puts, o.move, o.result = nil, [1]entry{}, 0, false, nil, nil
	o.state.Store(opWaiting)
	opPool.Put(o)
}

func (o *op) releaseFrames() {
	for i := range o.entries {
		putFrame(o.entries[i].frame)
		o.entries[i].frame, o.entries[i].rest = nil, nil
	}
}

// pass queues the second half of a chained write after the first was stored, or
// answers the caller that it was not.
func (o *op) pass(err error) {
	next := o.next
	if err == nil {
		if o.to.queue.add(next) {
			return
		}
		err = spool.ErrClosed
	}
	if next.state.CompareAndSwap(opWaiting, opTaken) {
		next.releaseFrames()
		next.done <- err
	}
}

// maxPooledFrame is the largest buffer that is kept for reuse.
const maxPooledFrame = 1 << 20

var framePool = sync.Pool{New: func() any { return new([]byte) }}

// borrowFrom is the size from which a value is not copied into its frame.
const borrowFrom = 16 << 10

// newHeader returns the header of the frame of value in a buffer from the pool.
func newHeader(value []byte) *[]byte {
	p := framePool.Get().(*[]byte)
	h := spool.FrameHeader(value)
	*p = append((*p)[:0], h[:]...)
	return p
}

// newFrame returns the frame of value in a buffer from the pool.
func newFrame(value []byte) *[]byte {
	n := len(value) + spool.HeaderSize
	if n > maxPooledFrame {
		b := spool.AppendFrame(make([]byte, 0, n), value)
		return &b
	}
	p := framePool.Get().(*[]byte)
	if cap(*p) < n {
		*p = make([]byte, 0, (n+4095)&^4095)
	}
	*p = spool.AppendFrame((*p)[:0], value)
	return p
}

func putFrame(p *[]byte) {
	if p != nil && cap(*p) <= maxPooledFrame {
		framePool.Put(p)
	}
}

// queue hands ops from callers to the writer in order.
type queue struct {
	mu      sync.Mutex // protects pending and closed; nothing is called under it
	pending []*op
	urgent  int // of pending, those that are not mere removals
	closed  bool
	wake    chan struct{} // capacity 1: pending or closed changed
}

func (q *queue) init() { q.wake = make(chan struct{}, 1) }

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// add queues o; false means the queue is closed.
func (q *queue) add(o *op) bool {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return false
	}
	q.pending = append(q.pending, o)
	first := len(q.pending) == 1
	if o.urgent() {
		q.urgent++
		first = first || q.urgent == 1
	}
	q.mu.Unlock()
	if first {
		q.signal()
	}
	return true
}

// close ends the queue after what is pending; false when it was closed before.
func (q *queue) close() bool {
	q.mu.Lock()
	was := q.closed
	q.closed = true
	q.mu.Unlock()
	q.signal()
	return !was
}

// rideTime is how long removals wait for something to store, with which they share
// a flush. Nobody answers a peer after a removal.
const rideTime = time.Millisecond

// urgent reports whether o is more than a removal.
func (o *op) urgent() bool { return o.puts || o.move != nil }

// take waits for ops and appends a batch of them to buf. It returns early with
// an empty batch when timer fires. open is false when the queue is closed and
// empty.
func (q *queue) take(buf []*op, timer <-chan time.Time) (batch []*op, open bool) {
	var ride *time.Timer
	for waited := false; ; {
		q.mu.Lock()
		if len(q.pending) > 0 && q.urgent == 0 && !q.closed && !waited {
			q.mu.Unlock()
			if ride == nil {
				ride = time.NewTimer(rideTime)
				defer ride.Stop()
			}
			select {
			case <-q.wake:
			case <-ride.C:
				waited = true
			}
			continue
		}
		if len(q.pending) > 0 {
			q.gather()
			n := batchLength(q.pending)
			buf = append(buf, q.pending[:n]...)
			for _, o := range buf {
				if o.urgent() {
					q.urgent--
				}
			}
			rest := copy(q.pending, q.pending[n:])
			clear(q.pending[rest:])
			q.pending = q.pending[:rest]
			q.mu.Unlock()
			return buf, true
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return buf, false
		}
		select {
		case <-q.wake:
		case <-timer:
			return buf, true
		}
	}
}

// gatherRounds limits how often the writer lets others run before a batch.
const gatherRounds = 8

// gather lets the callers that the last batch has woken run and queue their next
// op, as long as that brings any; mu is held before and after. It costs a lone
// caller one scheduler call, and about doubles the batches of many.
func (q *queue) gather() {
	for range gatherRounds {
		n := len(q.pending)
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
		if len(q.pending) == n || n >= batchOps {
			return
		}
	}
}

// batchLength returns how many ops one transaction takes, at least one.
func batchLength(ops []*op) int {
	count, size := 0, 0
	for i, o := range ops {
		count += max(1, len(o.entries))
		size += o.bytes
		if i > 0 && (count > batchOps || size > batchBytes) {
			return i
		}
	}
	return len(ops)
}
