package settings

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Epoch counts the versions of the configuration (flows CE-1, CE-2) and tells subscribers of each change.
// The zero value is epoch 0 and ready to use. It is safe for concurrent use and must not be copied.
type Epoch struct {
	n    atomic.Uint64
	mu   sync.Mutex // guards subs
	subs map[chan struct{}]struct{}
}

// Current returns the number of bumps so far.
func (e *Epoch) Current() uint64 { return e.n.Load() }

// Bump begins a new epoch and wakes the subscribers. It never blocks on them.
func (e *Epoch) Bump() uint64 {
	n := e.n.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	for c := range maps.Keys(e.subs) {
		select {
		case c <- struct{}{}:
		default: // it has not yet read the last one, which will do for both
		}
	}
	return n
}

// Subscribe returns a channel that receives after each bump; bumps that come faster than they are read are joined.
// cancel ends the subscription; it may be called more than once. The channel is never closed.
func (e *Epoch) Subscribe() (changed <-chan struct{}, cancel func()) {
	c := make(chan struct{}, 1)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.subs == nil {
		e.subs = map[chan struct{}]struct{}{}
	}
	e.subs[c] = struct{}{}
	return c, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.subs, c)
	}
}
