package cache

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
)

// sampleSize is how many items are looked at when one has to go (flows CA-1).
const sampleSize = 10

// entry is one item. It is replaced, never changed, except for used and slot.
type entry[K comparable, V any] struct {
	key     K
	val     V
	err     error
	expires int64 // time of the cache's clock
	used    atomic.Int64
	slot    int // index in shard.list, guarded by the lock of the shard
}

func (e *entry[K, V]) live(now int64) bool { return e != nil && now < e.expires }

// flight is one populate that runs. Its result may be read once done is closed.
type flight[V any] struct {
	done chan struct{}
	val  V
	err  error
	void bool // no answer (C3): somebody else has to populate
}

// shard is one part of a cache. The lock guards all but the inside of entries and flights; nothing is called while it
// is held.
type shard[K comparable, V any] struct {
	mu       sync.RWMutex
	items    map[K]*entry[K, V]
	list     []*entry[K, V] // the items again, for random choice
	flights  map[K]*flight[V]
	capacity int
}

func (s *shard[K, V]) init(capacity int) {
	s.items = make(map[K]*entry[K, V])
	s.flights = make(map[K]*flight[V])
	s.capacity = capacity
}

func (s *shard[K, V]) get(key K) *entry[K, V] {
	s.mu.RLock()
	e := s.items[key]
	s.mu.RUnlock()
	return e
}

// put stores an entry and returns how many expired ones, the one it replaces included, and how many live ones had to
// go. Held: the write lock.
func (s *shard[K, V]) put(e *entry[K, V], now int64) (expired, evicted int) {
	if old := s.items[e.key]; old != nil {
		e.slot = old.slot
		s.list[e.slot] = e
		s.items[e.key] = e
		if !old.live(now) {
			expired = 1
		}
		return expired, 0
	}
	e.slot = len(s.list)
	s.list = append(s.list, e)
	s.items[e.key] = e
	return s.shrink(now, e)
}

// remove takes an entry out, if it is still in. Held: the write lock.
func (s *shard[K, V]) remove(e *entry[K, V]) bool {
	if s.items[e.key] != e {
		return false
	}
	delete(s.items, e.key)
	last := len(s.list) - 1
	s.list[e.slot] = s.list[last]
	s.list[e.slot].slot = e.slot
	s.list[last] = nil
	s.list = s.list[:last]
	return true
}

// shrink removes entries other than spare until the capacity is kept. Held: the write lock.
func (s *shard[K, V]) shrink(now int64, spare *entry[K, V]) (expired, evicted int) {
	for len(s.list) > s.capacity {
		var room [sampleSize]*entry[K, V]
		sample := s.sample(room[:0], spare)
		live := sample[:0]
		for _, e := range sample {
			if e.live(now) {
				live = append(live, e)
				continue
			}
			s.remove(e)
			expired++
		}
		slices.SortFunc(live, func(a, b *entry[K, V]) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
		for i := 0; i < len(live) && i < sampleSize/2 && len(s.list) > s.capacity; i++ {
			s.remove(live[i])
			evicted++
		}
	}
	return expired, evicted
}

// sample appends up to sampleSize different entries other than spare, all of them when there are no more.
func (s *shard[K, V]) sample(to []*entry[K, V], spare *entry[K, V]) []*entry[K, V] {
	if len(s.list) <= sampleSize {
		for _, e := range s.list {
			if e != spare {
				to = append(to, e)
			}
		}
		return to
	}
	for range 2 * sampleSize { // repetitions are rare; a smaller sample does no harm
		e := s.list[rand.IntN(len(s.list))]
		if e != spare && !slices.Contains(to, e) {
			if to = append(to, e); len(to) == sampleSize {
				break
			}
		}
	}
	return to
}

// clear forgets everything, also what is being populated (C2), and returns how many items there were.
func (s *shard[K, V]) clear() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.list)
	s.items = make(map[K]*entry[K, V])
	s.list = nil
	clear(s.flights)
	return n
}

// prune removes what has expired and returns how many items that was.
func (s *shard[K, V]) prune(now int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for i := len(s.list) - 1; i >= 0; i-- { // the entry that takes the place of i was looked at before
		if e := s.list[i]; !e.live(now) && s.remove(e) {
			n++
		}
	}
	return n
}
