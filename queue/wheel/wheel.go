package wheel

import (
	"math/bits"
	"time"
)

const (
	slotBits = 6
	slots    = 1 << slotBits
	levels   = 11 // 66 bits: every tick has its place
)

// Entry is the handle of one value in a wheel. The zero value is in no wheel. It must not be copied while in one.
type Entry[T any] struct {
	// Value belongs to the owner; the wheel does not look at it.
	Value T

	next, prev *Entry[T]
	due        int64 // tick
}

// Queued reports whether e is in a wheel.
func (e *Entry[T]) Queued() bool { return e.next != nil }

// list is a ring around a sentinel.
type list[T any] struct{ root Entry[T] }

func (l *list[T]) init() { l.root.next, l.root.prev = &l.root, &l.root }

func (l *list[T]) empty() bool { return l.root.next == &l.root }

func (l *list[T]) push(e *Entry[T]) {
	last := l.root.prev
	e.prev, e.next = last, &l.root
	last.next, l.root.prev = e, e
}

// shift takes the first entry off; nil when there is none.
func (l *list[T]) shift() *Entry[T] {
	e := l.root.next
	if e == &l.root {
		return nil
	}
	e.unlink()
	return e
}

func (e *Entry[T]) unlink() {
	e.prev.next, e.next.prev = e.next, e.prev
	e.next, e.prev = nil, nil
}

// moveTo appends all entries to an other list in one step.
func (l *list[T]) moveTo(to *list[T]) {
	if l.empty() {
		return
	}
	first, last, end := l.root.next, l.root.prev, to.root.prev
	end.next, first.prev = first, end
	last.next, to.root.prev = &to.root, last
	l.init()
}

// Wheel keeps entries in order of time. Make one with [New]. It is not safe for concurrent use.
type Wheel[T any] struct {
	res  int64 // nanoseconds per tick
	now  int64 // tick
	size int
	// used has a bit for each slot that may hold entries; removal leaves a bit that is cleared when it is next looked at.
	used  [levels]uint64
	slots [levels][slots]list[T]
	// due holds entries whose time has come, deal those of a slot that is being dealt out.
	due, deal list[T]
}

// New makes a wheel whose ticks last resolution, at least 1 ns.
func New[T any](resolution time.Duration) *Wheel[T] {
	w := &Wheel[T]{res: max(int64(resolution), 1)}
	w.due.init()
	w.deal.init()
	for i := range w.slots {
		for j := range w.slots[i] {
			w.slots[i][j].init()
		}
	}
	return w
}

// Len returns the number of entries.
func (w *Wheel[T]) Len() int { return w.size }

// Insert puts e in, to be popped at the time at. An entry that is in a wheel already is left alone. Cost O(1).
func (w *Wheel[T]) Insert(e *Entry[T], at time.Duration) {
	if e.Queued() {
		return
	}
	e.due = w.ticksUp(at)
	w.size++
	w.place(e)
}

// ticksUp rounds up, so that nothing is popped early (W1).
func (w *Wheel[T]) ticksUp(at time.Duration) int64 {
	t := int64(at) / w.res
	if t*w.res < int64(at) {
		t++
	}
	return t
}

// place puts an entry where its tick belongs as seen from the present.
func (w *Wheel[T]) place(e *Entry[T]) {
	if e.due <= w.now {
		w.due.push(e)
		return
	}
	level := (bits.Len64(uint64(e.due^w.now)) - 1) / slotBits
	slot := e.due >> (slotBits * level) & (slots - 1)
	w.used[level] |= 1 << slot
	w.slots[level][slot].push(e)
}

// Remove takes e out and reports whether it was in. Cost O(1).
func (w *Wheel[T]) Remove(e *Entry[T]) bool {
	if !e.Queued() {
		return false
	}
	e.unlink()
	w.size--
	return true
}

// Pop lets time pass until now and appends entries whose time has come to out, up to a length of limit, the earlier ticks
// first. more says that it stopped early; the next call goes on. A call deals out at most limit entries besides.
func (w *Wheel[T]) Pop(now time.Duration, out []*Entry[T], limit int) (_ []*Entry[T], more bool) {
	target := int64(now) / w.res
	dealt := 0
	for len(out) < limit {
		if e := w.due.shift(); e != nil {
			w.size--
			out = append(out, e)
			continue
		}
		if dealt >= limit {
			return out, true
		}
		if e := w.deal.shift(); e != nil {
			dealt++
			w.place(e)
			continue
		}
		if !w.turn(target) {
			return out, false
		}
	}
	return out, true
}

// turn moves the present to the next slot in use that is not after target and takes the slot apart; false when there
// is none and the present is target.
func (w *Wheel[T]) turn(target int64) bool {
	level, slot, at := w.first()
	if level < 0 || at > target {
		w.now = max(w.now, target)
		return false
	}
	w.now = at
	w.used[level] &^= 1 << slot
	if level == 0 {
		w.slots[0][slot].moveTo(&w.due)
	} else {
		w.slots[level][slot].moveTo(&w.deal)
	}
	return true
}

// first finds the next slot that holds entries and the tick at which it begins; level -1 when there is none. Slots in
// use lie ahead of the present, and those of a lower level come before those of a higher one.
func (w *Wheel[T]) first() (level, slot int, at int64) {
	for level = range levels {
		for w.used[level] != 0 {
			slot = bits.TrailingZeros64(w.used[level])
			if w.slots[level][slot].empty() {
				w.used[level] &^= 1 << slot
				continue
			}
			shift := slotBits * level
			return level, slot, w.now>>(shift+slotBits)<<(shift+slotBits) | int64(slot)<<shift
		}
	}
	return -1, 0, 0
}

// Next returns when the next Pop has something to do, never later than the earliest entry is due (W2); false when the
// wheel is empty. Cost O(1).
func (w *Wheel[T]) Next() (time.Duration, bool) {
	if !w.due.empty() || !w.deal.empty() {
		return time.Duration(w.now * w.res), true
	}
	level, _, at := w.first()
	if level < 0 {
		return 0, false
	}
	return time.Duration(at * w.res), true
}

// All calls each for every entry, in no particular order, until it returns false. each may remove the entry it is
// called with and nothing else.
func (w *Wheel[T]) All(each func(e *Entry[T]) bool) {
	if !w.due.all(each) || !w.deal.all(each) {
		return
	}
	for level := range w.slots {
		for slot := range w.slots[level] {
			if w.used[level]&(1<<slot) != 0 && !w.slots[level][slot].all(each) {
				return
			}
		}
	}
}

func (l *list[T]) all(each func(e *Entry[T]) bool) bool {
	for e := l.root.next; e != &l.root; {
		next := e.next
		if !each(e) {
			return false
		}
		e = next
	}
	return true
}
