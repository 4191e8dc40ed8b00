package queue

import (
	"context"
	"sync"
)

// runList is the list of queues with pending messages and the workers that serve them in turn. Workers begin on demand
// and end when the list is empty.
type runList struct {
	max   int
	serve func(ctx context.Context, q *scheduled, buf []item) (again bool)

	mu      sync.Mutex // guards what follows; taken without the lock of a queue
	ctx     context.Context
	qs      []*scheduled // qs[off:] waits
	off     int
	workers int
	open    bool
	wg      sync.WaitGroup
}

// serveBatch is how many messages of one queue a worker takes at once: enough to make the lock cheap, few enough to be
// fair.
const serveBatch = 64

// push puts q at the end.
func (r *runList) push(q *scheduled) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off > 32 && r.off*2 > len(r.qs) {
		n := copy(r.qs, r.qs[r.off:])
		clear(r.qs[n:])
		r.qs, r.off = r.qs[:n], 0
	}
	r.qs = append(r.qs, q)
	r.spawn()
}

// spawn begins a worker if one is missing.
func (r *runList) spawn() {
	if r.open && r.workers < r.max {
		r.workers++
		r.wg.Go(r.work)
	}
}

// start lets workers begin. Their work ends with ctx.
func (r *runList) start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ctx, r.open = ctx, true
	for range min(len(r.qs)-r.off, r.max) {
		r.spawn()
	}
}

// stop lets no worker begin any more and waits for those at work.
func (r *runList) stop() {
	r.mu.Lock()
	r.open = false
	r.mu.Unlock()
	r.wg.Wait()
}

// pop takes the first queue off; nil ends the worker.
func (r *runList) pop() *scheduled {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.off == len(r.qs) || !r.open {
		r.workers--
		return nil
	}
	q := r.qs[r.off]
	r.qs[r.off] = nil
	r.off++
	if r.off == len(r.qs) {
		r.qs, r.off = r.qs[:0], 0
	}
	return q
}

// batches are the buffers of workers, most of which live for one message.
var batches = sync.Pool{New: func() any { return new([serveBatch]item) }}

func (r *runList) work() {
	room := batches.Get().(*[serveBatch]item)
	defer batches.Put(room) // serve leaves it clear
	buf := room[:0]
	for q := r.pop(); q != nil; q = r.pop() {
		if r.serve(r.ctx, q, buf) {
			r.push(q)
		}
	}
}

// busy returns the number of workers.
func (r *runList) busy() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.workers
}
