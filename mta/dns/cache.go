package dns

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	cacheShards = 16
	maxCost     = 16 << 10 // octets of an answer worth keeping
)

type key struct {
	name  string
	qtype Type
}

// cached is an answer or a failure with the time it ends. Entries of a shard
// form a ring in the order of use, with a head that holds nothing.
type cached struct {
	key        key
	ans        Answer
	err        *Error
	ends       time.Time
	prev, next *cached
}

type shard struct {
	mu   sync.Mutex // protects the fields below; nothing else is locked under it
	m    map[key]*cached
	head cached
	size int
}

// cache keeps answers until their TTL ends (D1), and at most size of them; the
// one used least recently goes first.
type cache struct {
	seed   maphash.Seed
	shards [cacheShards]shard
}

func newCache(size int) *cache {
	c := &cache{seed: maphash.MakeSeed()}
	for i := range c.shards {
		s := &c.shards[i]
		s.size = max(1, (size+i)/cacheShards)
		s.m = make(map[key]*cached)
		s.head.prev, s.head.next = &s.head, &s.head
	}
	return c
}

func (c *cache) shard(k key) *shard {
	return &c.shards[maphash.String(c.seed, k.name)%cacheShards]
}

// get returns what is known of k now, with the TTL that is left.
func (c *cache) get(k key) (ans Answer, err *Error, ok bool) {
	now := time.Now()
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.m[k]
	if e == nil {
		return Answer{}, nil, false
	}
	left := e.ends.Sub(now)
	if left <= 0 {
		s.drop(e)
		return Answer{}, nil, false
	}
	e.unlink()
	s.push(e)
	if e.err != nil {
		fresh := *e.err
		fresh.TTL = left
		return Answer{}, &fresh, true
	}
	ans = e.ans
	ans.TTL = left
	return ans, nil, true
}

// put keeps ans or err for its TTL.
func (c *cache) put(k key, ans Answer, err *Error) {
	ttl := ans.TTL
	if err != nil {
		ttl = err.TTL
	} else if cost(ans) > maxCost {
		return
	}
	if ttl <= 0 {
		return
	}
	e := &cached{key: k, ans: ans, err: err, ends: time.Now().Add(ttl)}
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.m[k]; old != nil {
		s.drop(old)
	}
	for len(s.m) >= s.size {
		s.drop(s.head.prev)
	}
	s.m[k] = e
	s.push(e)
}

func (c *cache) len() int {
	n := 0
	for i := range c.shards {
		c.shards[i].mu.Lock()
		n += len(c.shards[i].m)
		c.shards[i].mu.Unlock()
	}
	return n
}

func (s *shard) drop(e *cached) {
	e.unlink()
	delete(s.m, e.key)
}

func (s *shard) push(e *cached) {
	e.prev, e.next = &s.head, s.head.next
	e.prev.next, e.next.prev = e, e
}

func (e *cached) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
}

// cost estimates the octets an answer holds.
func cost(a Answer) int {
	n := 64 + len(a.Records)*120
	for _, r := range a.Records {
		n += len(r.Host) + len(r.MX.Host)
		for _, t := range r.TXT {
			n += 16 + len(t)
		}
		if r.TLSA != nil {
			n += len(r.TLSA.Data)
		}
	}
	return n
}
