package route

import "time"

// known is what a Planner remembers of one domain: a plan or a failure.
type known struct {
	plan *Plan
	err  error
	ends time.Time

	key        string
	prev, next *known
}

// lru keeps what is known, at most size entries; the one used least recently
// goes first. The entries form a ring with a head that holds nothing. It is not
// safe for concurrent use.
type lru struct {
	size int
	m    map[string]*known
	head *known
}

func newLRU(size int) lru {
	l := lru{size: size, m: make(map[string]*known), head: &known{}}
	l.head.prev, l.head.next = l.head, l.head
	return l
}

// get returns the entry of key, or nil if there is none at the time now.
func (l *lru) get(key string, now time.Time) *known {
	k := l.m[key]
	if k == nil {
		return nil
	}
	if !now.Before(k.ends) {
		l.drop(key)
		return nil
	}
	k.unlink()
	l.push(k)
	return k
}

func (l *lru) put(key string, k known) {
	l.drop(key)
	for len(l.m) >= l.size {
		l.drop(l.head.prev.key)
	}
	k.key = key
	l.m[key] = &k
	l.push(&k)
}

func (l *lru) drop(key string) {
	if k := l.m[key]; k != nil {
		k.unlink()
		delete(l.m, key)
	}
}

func (l *lru) push(k *known) {
	k.prev, k.next = l.head, l.head.next
	k.prev.next, k.next.prev = k, k
}

func (k *known) unlink() {
	k.prev.next, k.next.prev = k.next, k.prev
}
