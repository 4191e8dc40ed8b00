package wheel

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

const tick = 100 * time.Millisecond

// popAll pops everything that is due.
func popAll[T any](w *Wheel[T], now time.Duration) []*Entry[T] {
	var all []*Entry[T]
	for {
		out, more := w.Pop(now, nil, 7)
		all = append(all, out...)
		if !more {
			return all
		}
	}
}

func TestEntrySize(t *testing.T) {
	if n := unsafe.Sizeof(Entry[[4]uint64]{}); n > 64 {
		t.Fatalf("an entry with 32 bytes of value takes %d bytes, want at most 64", n)
	}
}

func TestNeverEarlyNeverLate(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, at := range []time.Duration{-time.Hour, 0, 1, tick - 1, tick, tick + 1, 63 * tick, 64 * tick, 65 * tick,
		4095 * tick, 4096 * tick, time.Hour, 7 * 24 * time.Hour, year, 10 * year, 200 * year, math.MaxInt64} {
		w := New[int](tick)
		w.Insert(&Entry[int]{Value: 1}, at)
		up := (max(at, 0) + tick - 1) / tick * tick
		if at == math.MaxInt64 {
			up = at
		}
		if up > 0 {
			if got := popAll(w, up-1); len(got) != 0 {
				t.Errorf("W1: entry for %v popped at %v", at, up-1)
			}
		}
		if next, ok := w.Next(); !ok || next > up {
			t.Errorf("W2: Next of an entry for %v is %v, %v", at, next, ok)
		}
		if at == math.MaxInt64 {
			continue // its tick lies past the end of time
		}
		if got := popAll(w, up); len(got) != 1 || w.Len() != 0 {
			t.Errorf("W1: entry for %v not popped at %v", at, up)
		}
	}
}

func TestClockJumps(t *testing.T) {
	const years = 10 * 365 * 24 * time.Hour
	w := New[int](tick)
	for i := range 1000 {
		w.Insert(&Entry[int]{Value: i}, time.Duration(i)*time.Hour)
	}
	if got := popAll(w, 500*time.Hour); len(got) != 501 {
		t.Fatalf("popped %d, want 501", len(got))
	}
	if got := popAll(w, 500*time.Hour-years); len(got) != 0 {
		t.Fatalf("popped %d after the clock went back", len(got))
	}
	w.Insert(&Entry[int]{}, 400*time.Hour) // due already
	if got := popAll(w, 0); len(got) != 1 {
		t.Fatal("an entry of the past is not due at once")
	}
	if got := popAll(w, years); len(got) != 499 {
		t.Fatalf("popped %d after the clock went on ten years, want 499", len(got))
	}
	w.Insert(&Entry[int]{}, years+time.Second)
	if got := popAll(w, years+time.Second); len(got) != 1 {
		t.Fatal("the wheel does not go on after a jump")
	}
}

func TestInsertTwice(t *testing.T) {
	w := New[int](tick)
	e := &Entry[int]{}
	w.Insert(e, time.Second)
	w.Insert(e, time.Minute)
	if got := popAll(w, time.Second); len(got) != 1 || w.Len() != 0 || e.Queued() {
		t.Fatalf("popped %d, %d left", len(got), w.Len())
	}
	if w.Remove(e) {
		t.Fatal("removed an entry that is not in")
	}
}

// TestModel compares the wheel with a map under random operations.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := New[int](tick)
		model := map[*Entry[int]]time.Duration{} // time rounded up
		var now time.Duration
		span := rapid.OneOf(rapid.Int64Range(-int64(time.Minute), int64(time.Minute)),
			rapid.Int64Range(0, int64(24*time.Hour)), rapid.Int64Range(0, int64(400*24*time.Hour)))
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0, 1, 2, 3, 4:
				at := now + time.Duration(span.Draw(t, "at"))
				e := &Entry[int]{}
				w.Insert(e, at)
				up := at / tick * tick
				if up < at {
					up += tick
				}
				model[e] = up
			case 5:
				for e := range model {
					if !w.Remove(e) {
						t.Fatal("W3: an entry is gone")
					}
					delete(model, e)
					break
				}
			case 6:
				checkAll(t, w, model)
			default:
				now = max(now+time.Duration(span.Draw(t, "pass")), 0)
				checkPop(t, w, model, now)
			}
			if w.Len() != len(model) {
				t.Fatalf("Len is %d, want %d", w.Len(), len(model))
			}
			checkNext(t, w, model)
		}
	})
}

func checkPop(t *rapid.T, w *Wheel[int], model map[*Entry[int]]time.Duration, now time.Duration) {
	limit := rapid.IntRange(1, 40).Draw(t, "limit")
	for more := true; more; {
		var out []*Entry[int]
		if out, more = w.Pop(now, nil, limit); len(out) > limit {
			t.Fatalf("popped %d with limit %d", len(out), limit)
		}
		for _, e := range out {
			at, ok := model[e]
			if !ok || e.Queued() {
				t.Fatal("W3: popped twice")
			}
			if at > max(now, time.Duration(w.now)*tick) {
				t.Fatalf("W1: popped at %v, due at %v", now, at)
			}
			delete(model, e)
		}
	}
	for _, at := range model {
		if at <= now {
			t.Fatalf("W1: not popped at %v, due at %v", now, at)
		}
	}
}

func checkNext(t *rapid.T, w *Wheel[int], model map[*Entry[int]]time.Duration) {
	next, ok := w.Next()
	if ok != (len(model) > 0) {
		t.Fatalf("Next says %v with %d entries", ok, len(model))
	}
	for _, at := range model {
		if next > max(at, time.Duration(w.now)*tick) {
			t.Fatalf("W2: Next is %v, an entry is due at %v", next, at)
		}
	}
}

func checkAll(t *rapid.T, w *Wheel[int], model map[*Entry[int]]time.Duration) {
	seen := map[*Entry[int]]bool{}
	w.All(func(e *Entry[int]) bool {
		if _, ok := model[e]; !ok || seen[e] {
			t.Fatal("All yields a wrong entry")
		}
		seen[e] = true
		return true
	})
	if len(seen) != len(model) {
		t.Fatalf("All yields %d of %d", len(seen), len(model))
	}
}

// benchmarkSteady inserts and pops one entry at a time while n others are in.
func benchmarkSteady(b *testing.B, n int) {
	w := New[[4]uint64](tick)
	const span = 7 * 24 * time.Hour
	step := span / time.Duration(n)
	es := make([]Entry[[4]uint64], n)
	var now time.Duration
	for i := range es {
		w.Insert(&es[i], time.Duration(i)*step)
	}
	out := make([]*Entry[[4]uint64], 0, 64)
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; {
		now += step
		var more bool
		for more = true; more; {
			out, more = w.Pop(now, out[:0], 64)
			for _, e := range out {
				w.Insert(e, now+span)
				i++
			}
		}
	}
}

func BenchmarkInsertPop1e3(b *testing.B) { benchmarkSteady(b, 1e3) }
func BenchmarkInsertPop1e6(b *testing.B) { benchmarkSteady(b, 1e6) }

func BenchmarkInsertRemove(b *testing.B) {
	w := New[[4]uint64](tick)
	var e Entry[[4]uint64]
	b.ReportAllocs()
	for i := range b.N {
		w.Insert(&e, time.Duration(i)*time.Millisecond+time.Hour)
		w.Remove(&e)
	}
}
