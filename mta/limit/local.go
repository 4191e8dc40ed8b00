package limit

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"time"
)

const (
	shards   = 64 // a power of two
	minSweep = 128
)

// Local keeps rates and leases in this process. It has no goroutines and needs no closing. Make it with [NewLocal].
//
// It reports Limit as the burst it admits from rest.
type Local struct {
	seed   maphash.Seed
	start  time.Time // times are counted from here
	rates  [shards]rateShard
	leases [shards]leaseShard
}

var _ Keeper = (*Local)(nil)

// rateKey is the effective key of flows TH-4 (E2), without making a string of it.
type rateKey struct {
	name   string
	count  uint64
	burst  uint64
	period time.Duration
}

// rateShard holds part of the rates. mu guards all of it.
type rateShard struct {
	mu      sync.Mutex
	tats    map[rateKey]instant
	sweepAt int
	_       [40]byte // a shard to a cache line
}

// NewLocal returns an empty keeper.
func NewLocal() *Local {
	l := &Local{seed: maphash.MakeSeed(), start: time.Now()}
	for i := range shards {
		l.rates[i].tats = map[rateKey]instant{}
		l.rates[i].sweepAt = minSweep
		l.leases[i].sets = map[string]*leaseSet{}
		l.leases[i].sweepAt = minSweep
	}
	return l
}

func (l *Local) shard(key string) uint64 { return maphash.String(l.seed, key) % shards }

// now is the time since start; it is monotonic.
func (l *Local) now() int64 { return int64(time.Since(l.start)) }

// Take takes n operations from the rate r under key. See [Keeper].
func (l *Local) Take(_ context.Context, key string, r Rate, n int) (Result, error) {
	if err := r.Check(); err != nil {
		return Result{}, err
	}
	k := rateKey{key, r.Count, r.burst(), r.Period}
	if n < 0 {
		return Result{}, fmt.Errorf("cannot take %d", n)
	}
	if uint64(n) > k.burst {
		return Result{}, fmt.Errorf("taking %d from %s: %w", n, r, ErrNeverAdmitted)
	}
	s := &l.rates[l.shard(key)]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := instant{ns: l.now()} // under the lock, so that time does not go back within a shard
	tat, known := s.tats[k]
	next, res := gcra(tat, now, r, uint64(n))
	if res.Throttled || n == 0 {
		return res, nil
	}
	if !known {
		if len(s.tats) >= s.sweepAt {
			s.sweep(now)
		}
		k.name = strings.Clone(key) // not the buffer it may be cut from
	}
	s.tats[k] = next
	return res, nil
}

// sweep forgets rates that are at rest: they are as if never used. It runs when the shard has doubled since the last
// time, so its cost is spread over the new keys.
func (s *rateShard) sweep(now instant) {
	live := 0
	for _, tat := range s.tats {
		if tat.compare(now) > 0 {
			live++
		}
	}
	kept := make(map[rateKey]instant, live+1)
	for k, tat := range s.tats {
		if tat.compare(now) > 0 {
			kept[k] = tat
		}
	}
	s.tats = kept
	s.sweepAt = max(minSweep, 2*live)
}

// Size tells how many rates and how many limits are remembered, for metrics.
func (l *Local) Size() (rates, limits int) {
	for i := range shards {
		l.rates[i].mu.Lock()
		rates += len(l.rates[i].tats)
		l.rates[i].mu.Unlock()
		l.leases[i].mu.Lock()
		limits += len(l.leases[i].sets)
		l.leases[i].mu.Unlock()
	}
	return rates, limits
}
