package limit

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"time"
)

// leaseShard holds part of the limits. mu guards all of it, the sets and leases included.
type leaseShard struct {
	mu      sync.Mutex
	sets    map[string]*leaseSet
	sweepAt int
	_       [40]byte // a shard to a cache line
}

// leaseSet is the leases held under one name.
type leaseSet struct {
	held []*localLease
	// due is not after the earliest expiry: before it there is nothing to prune.
	due int64
	// released is closed at the next release, nil while nobody waits.
	released chan struct{}
}

// localLease is a lease of a Local. It is held while at >= 0.
type localLease struct {
	keeper  *Local
	shard   *leaseShard
	key     string
	ttl     time.Duration
	expires int64
	at      int // index in the set
}

// Lease takes one of n leases under key. See [Keeper]. The name alone is the key: a changed limit counts what is held.
func (l *Local) Lease(_ context.Context, key string, n Limit, ttl time.Duration) (Lease, bool, error) {
	if n.N == 0 || ttl <= 0 {
		return nil, false, errors.New("a lease needs a limit and a time above 0")
	}
	s := &l.leases[l.shard(key)]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.now()
	set := s.sets[key]
	if set == nil {
		set = s.add(strings.Clone(key), now)
	}
	set.prune(now)
	if uint64(len(set.held)) >= n.N { // E1
		return nil, false, nil
	}
	lease := &localLease{keeper: l, shard: s, key: key, ttl: ttl, expires: later(now, ttl), at: len(set.held)}
	set.held = append(set.held, lease)
	set.due = min(set.due, lease.expires)
	return lease, true, nil
}

// later is now + ttl without overflow.
func later(now int64, ttl time.Duration) int64 {
	if int64(ttl) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + int64(ttl)
}

func (s *leaseShard) add(key string, now int64) *leaseSet {
	if len(s.sets) >= s.sweepAt {
		s.sweep(now)
	}
	set := &leaseSet{due: math.MaxInt64}
	s.sets[key] = set
	return set
}

// sweep forgets limits whose leases have all expired.
func (s *leaseShard) sweep(now int64) {
	kept := make(map[string]*leaseSet)
	for k, set := range s.sets {
		set.prune(now)
		if len(set.held) > 0 {
			kept[k] = set
		}
	}
	s.sets = kept
	s.sweepAt = max(minSweep, 2*len(kept))
}

// prune ends expired leases and wakes who waits for them.
func (set *leaseSet) prune(now int64) {
	if now < set.due {
		return
	}
	pruned := false
	set.due = math.MaxInt64
	for i := 0; i < len(set.held); {
		if lease := set.held[i]; lease.expires > now {
			set.due = min(set.due, lease.expires)
			i++
			continue
		}
		set.remove(i)
		pruned = true
	}
	if pruned {
		set.wake()
	}
}

// remove ends the lease at i.
func (set *leaseSet) remove(i int) {
	last := len(set.held) - 1
	set.held[i].at = -1
	if i != last {
		set.held[i] = set.held[last]
		set.held[i].at = i
	}
	set.held[last] = nil
	set.held = set.held[:last]
}

func (set *leaseSet) wake() {
	if set.released != nil {
		close(set.released)
		set.released = nil
	}
}

// Extend makes the lease last for its ttl from now, if it is still held.
func (l *localLease) Extend(context.Context) error {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	if l.at < 0 {
		return ErrLeaseLost
	}
	l.expires = later(l.keeper.now(), l.ttl) // due of the set stays a lower bound
	return nil
}

// Release gives the lease back and wakes who waits.
func (l *localLease) Release() {
	s := l.shard
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.at < 0 {
		return
	}
	set := s.sets[l.key]
	set.remove(l.at)
	set.wake()
	if len(set.held) == 0 {
		delete(s.sets, l.key)
	}
}

// Released returns a channel that is closed when a lease under key is next released or found expired. It is closed at
// once when none is held. To miss nothing, ask for the channel first, then for the lease, then wait.
// A lease that expires is found so by the next Lease or Released of that key, or by [Local.Acquire] in time.
func (l *Local) Released(key string) <-chan struct{} {
	c, _ := l.released(key)
	return c
}

// released also tells how long until a lease may expire.
func (l *Local) released(key string) (<-chan struct{}, time.Duration) {
	s := &l.leases[l.shard(key)]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.now()
	set := s.sets[key]
	if set != nil {
		set.prune(now)
	}
	if set == nil || len(set.held) == 0 {
		c := make(chan struct{})
		close(c)
		return c, 0
	}
	if set.released == nil {
		set.released = make(chan struct{})
	}
	return set.released, time.Duration(max(set.due-now, 1))
}

// Acquire is Lease that waits for room until ctx ends; its error is then that of ctx (flows TH-7).
func (l *Local) Acquire(ctx context.Context, key string, n Limit, ttl time.Duration) (Lease, error) {
	for {
		released, expiry := l.released(key)
		lease, ok, err := l.Lease(ctx, key, n, ttl)
		if ok || err != nil {
			return lease, err
		}
		t := time.NewTimer(max(expiry, time.Millisecond))
		select {
		case <-released:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, context.Cause(ctx)
		}
		t.Stop()
	}
}
