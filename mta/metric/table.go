package metric

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// table maps label sets to values. Lookups take no lock and do not allocate; inserts and deletes hold mu.
//
// Entries are immutable once published, so a reader may walk a chain that a writer has replaced meanwhile. A reader
// that misses takes mu and looks again, which is how an insert is never doubled.
type table[V any] struct {
	seed maphash.Seed
	cur  atomic.Pointer[slots[V]]

	mu sync.Mutex
	n  int // guarded by mu
}

type slots[V any] struct {
	heads []atomic.Pointer[entry[V]] // the length is a power of two
}

type entry[V any] struct {
	hash   uint64
	values []string
	val    *V
	next   *entry[V]
}

const firstSlots = 8

func newTable[V any]() *table[V] {
	t := &table[V]{seed: maphash.MakeSeed()}
	t.cur.Store(&slots[V]{heads: make([]atomic.Pointer[entry[V]], firstSlots)})
	return t
}

func (t *table[V]) hash(values []string) uint64 {
	var h uint64
	for _, v := range values {
		h = bits.RotateLeft64(h, 7)*0x9e3779b97f4a7c15 ^ maphash.String(t.seed, v)
	}
	return h
}

func (s *slots[V]) head(h uint64) *atomic.Pointer[entry[V]] {
	return &s.heads[h&uint64(len(s.heads)-1)]
}

func (s *slots[V]) find(h uint64, values []string) *V {
	for e := s.head(h).Load(); e != nil; e = e.next {
		if e.hash == h && slices.Equal(e.values, values) {
			return e.val
		}
	}
	return nil
}

// get returns the value of a label set, made by fresh when there is none.
func (t *table[V]) get(values []string, fresh func() *V) *V {
	h := t.hash(values)
	if v := t.cur.Load().find(h, values); v != nil {
		return v
	}
	return t.insert(h, values, fresh)
}

func (t *table[V]) insert(h uint64, values []string, fresh func() *V) *V {
	if valid := validValues(values); valid != nil {
		return t.get(valid, fresh)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.cur.Load()
	if v := s.find(h, values); v != nil {
		return v
	}
	if t.n >= 2*len(s.heads) {
		s = s.grown()
		t.cur.Store(s)
	}
	own := make([]string, len(values))
	for i, v := range values {
		own[i] = strings.Clone(v) // the caller's string may be a piece of a large buffer
	}
	head := s.head(h)
	e := &entry[V]{hash: h, values: own, val: fresh(), next: head.Load()}
	head.Store(e)
	t.n++
	return e.val
}

// validValues returns values with U+FFFD for bytes that are no UTF-8, so that what looks the same in an exposition is
// the same series (MT1); nil when there is nothing to replace.
func validValues(values []string) []string {
	for _, v := range values {
		if utf8.ValidString(v) {
			continue
		}
		valid := make([]string, len(values))
		for i, v := range values {
			valid[i] = strings.ToValidUTF8(v, "\uFFFD")
		}
		return valid
	}
	return nil
}

func (s *slots[V]) grown() *slots[V] {
	next := &slots[V]{heads: make([]atomic.Pointer[entry[V]], 2*len(s.heads))}
	for i := range s.heads {
		for e := s.heads[i].Load(); e != nil; e = e.next {
			head := next.head(e.hash)
			head.Store(&entry[V]{hash: e.hash, values: e.values, val: e.val, next: head.Load()})
		}
	}
	return next
}

// remove takes a label set out and reports whether it was there.
func (t *table[V]) remove(values []string) bool {
	if valid := validValues(values); valid != nil {
		values = valid
	}
	h := t.hash(values)
	t.mu.Lock()
	defer t.mu.Unlock()
	head := t.cur.Load().head(h)
	var keep *entry[V]
	found := false
	for e := head.Load(); e != nil; e = e.next {
		if e.hash == h && slices.Equal(e.values, values) {
			found = true
			continue
		}
		keep = &entry[V]{hash: e.hash, values: e.values, val: e.val, next: keep}
	}
	if found {
		head.Store(keep)
		t.n--
	}
	return found
}

// each calls fn for every label set. Label sets inserted or removed meanwhile may or may not be seen.
func (t *table[V]) each(fn func(values []string, v *V)) {
	s := t.cur.Load()
	for i := range s.heads {
		for e := s.heads[i].Load(); e != nil; e = e.next {
			fn(e.values, e.val)
		}
	}
}
