package cache

import (
	"hash/maphash"
	"math"
	"math/bits"
	"time"
)

// maxShards bounds the parts of a cache, minShard the size of a part.
const (
	maxShards = 16
	minShard  = 64
)

// Cache maps keys to values that age. It is made by [New] and safe for concurrent use. Values are shared by all who
// look them up.
type Cache[K comparable, V any] struct {
	opt    Options
	m      *Metrics
	start  time.Time // origin of the clock; monotonic
	seed   maphash.Seed
	shards []shard[K, V] // the length is a power of two
}

// New returns an empty cache.
func New[K comparable, V any](o Options) *Cache[K, V] {
	o.fill()
	n := min(max(o.Capacity/minShard, 1), maxShards)
	n = 1 << (bits.Len(uint(n)) - 1)
	c := &Cache[K, V]{opt: o, m: o.Metrics, start: time.Now(), seed: maphash.MakeSeed(), shards: make([]shard[K, V], n)}
	for i := range c.shards {
		c.shards[i].init(c.share(o.Capacity))
	}
	return c
}

// share is the capacity of one part.
func (c *Cache[K, V]) share(capacity int) int {
	return (max(capacity, 1) + len(c.shards) - 1) / len(c.shards)
}

// SetCapacity changes the number of items the cache holds, at least 1, and evicts what is over.
func (c *Cache[K, V]) SetCapacity(n int) {
	share, now := c.share(n), c.now()
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		s.capacity = share
		expired, evicted := s.shrink(now, nil)
		s.mu.Unlock()
		c.count(-expired-evicted, expired, evicted)
	}
}

func (c *Cache[K, V]) now() int64 { return int64(time.Since(c.start)) }

func (c *Cache[K, V]) shard(key K) *shard[K, V] {
	if len(c.shards) == 1 {
		return &c.shards[0]
	}
	return &c.shards[maphash.Comparable(c.seed, key)&uint64(len(c.shards)-1)]
}

// Get returns the live value of key and whether there is one. A kept error is none.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.m.lookup.Add(1)
	s, now := c.shard(key), c.now()
	e := s.get(key)
	if e.live(now) && e.err == nil {
		e.used.Store(now)
		c.m.hit.Add(1)
		return e.val, true
	}
	c.m.miss.Add(1)
	if e != nil && !e.live(now) && !c.opt.AllowStale {
		c.expire(s, e)
	}
	var none V
	return none, false
}

// Set gives key a value for the time ttl and ends what was known or being populated before (C2). A ttl that is not
// positive deletes the key.
func (c *Cache[K, V]) Set(key K, v V, ttl time.Duration) {
	if ttl <= 0 {
		c.Delete(key)
		return
	}
	c.m.insert.Add(1)
	s := c.shard(key)
	s.mu.Lock()
	delete(s.flights, key)
	before := len(s.list)
	expired, evicted := c.store(s, key, v, nil, ttl)
	grown := len(s.list) - before
	s.mu.Unlock()
	c.count(grown, expired, evicted)
}

// store puts a new entry in. Held: the write lock of s.
func (c *Cache[K, V]) store(s *shard[K, V], key K, v V, err error, ttl time.Duration) (expired, evicted int) {
	now := c.now()
	e := &entry[K, V]{key: key, val: v, err: err, expires: math.MaxInt64}
	if int64(ttl) < math.MaxInt64-now {
		e.expires = now + int64(ttl)
	}
	e.used.Store(now)
	return s.put(e, now)
}

// count tells the instruments by how many items the cache grew, and how many went for which reason.
func (c *Cache[K, V]) count(grown, expired, evicted int) {
	if grown != 0 {
		c.m.size.Add(float64(grown))
	}
	if expired > 0 {
		c.m.expire.Add(expired)
	}
	if evicted > 0 {
		c.m.evict.Add(evicted)
	}
}

// expire removes an entry that was found expired.
func (c *Cache[K, V]) expire(s *shard[K, V], e *entry[K, V]) {
	s.mu.Lock()
	gone := s.remove(e)
	s.mu.Unlock()
	if gone {
		c.count(-1, 1, 0)
	}
}

// Delete removes key, also when it is being populated (C2), and reports whether there was an item.
func (c *Cache[K, V]) Delete(key K) bool {
	s := c.shard(key)
	s.mu.Lock()
	delete(s.flights, key)
	e := s.items[key]
	gone := e != nil && s.remove(e)
	s.mu.Unlock()
	if gone {
		c.count(-1, 0, 0)
	}
	return gone
}

// Clear removes everything, also what is being populated (C2).
func (c *Cache[K, V]) Clear() {
	for i := range c.shards {
		c.count(-c.shards[i].clear(), 0, 0)
	}
}

// Prune removes expired items and returns how many there were (flows CA-2). With AllowStale it keeps them and
// returns 0.
func (c *Cache[K, V]) Prune() int {
	if c.opt.AllowStale {
		return 0
	}
	total := 0
	for i := range c.shards {
		n := c.shards[i].prune(c.now())
		c.count(-n, n, 0)
		total += n
	}
	return total
}

// Len returns the number of items, expired ones and errors included.
func (c *Cache[K, V]) Len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		n += len(s.list)
		s.mu.RUnlock()
	}
	return n
}
