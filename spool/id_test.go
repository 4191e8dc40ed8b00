package spool

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestIDKnownValue(t *testing.T) {
	// RFC 9562 appendix A.1 and A.5 show the same moment as version 1 and 6.
	id, err := ParseID("C232AB00-9414-11EC-B3C8-9F6BDECED846")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := id.String(), "c232ab00941411ecb3c89f6bdeced846"; got != want {
		t.Errorf("String = %s, want %s", got, want)
	}
	want := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)
	if got := id.Time(); !got.Equal(want) {
		t.Errorf("Time = %v, want %v", got, want)
	}
	// Version 6 text with the version digit left at 1.
	k := id.Key()
	if got := ID(k).String(); got != "1ec9414c232a1b00b3c89f6bdeced846" {
		t.Errorf("Key = %s", got)
	}
	if FromKey(k) != id {
		t.Errorf("FromKey(Key) = %s", FromKey(k))
	}
}

func TestParseID(t *testing.T) {
	for _, bad := range []string{
		"", "00", strings.Repeat("g", 32), strings.Repeat("a", 31), strings.Repeat("a", 33),
		"c232ab009-414-11ec-b3c8-9f6bdeced846", "c232ab00-9414-11ec-b3c8-9f6bdeced84",
		"../../../../../../etc/passwd/aaaa", "c232ab00941411ecb3c89f6bdeced84\x00",
		"c232ab00-9414-11ec-b3c8-9f6bdeced8--",
	} {
		if id, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) = %s", bad, id)
		}
	}
	var id ID
	if err := id.UnmarshalText([]byte("C232AB00941411ECB3C89F6BDECED846")); err != nil {
		t.Error(err)
	}
	text, err := id.MarshalText()
	if err != nil || string(text) != "c232ab00941411ecb3c89f6bdeced846" {
		t.Errorf("MarshalText = %s, %v", text, err)
	}
	if err := id.UnmarshalText([]byte("x")); err == nil {
		t.Error("UnmarshalText took x")
	}
}

func TestIDZero(t *testing.T) {
	var id ID
	if !id.IsZero() || NewIDs().Next().IsZero() {
		t.Error("IsZero")
	}
	if !id.Time().IsZero() {
		t.Errorf("Time of the zero ID = %v", id.Time())
	}
}

func TestNextIncreasing(t *testing.T) {
	at := time.Now()
	g := newIDs(func() time.Time { return at }) // a clock that stands still
	const workers, each = 8, 2000
	lists := make([][]ID, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				lists[w] = append(lists[w], g.Next())
			}
		})
	}
	wg.Wait()
	seen := map[ID]bool{}
	for _, l := range lists {
		if !slices.IsSortedFunc(l, ID.Compare) {
			t.Error("IDs of one goroutine are not increasing")
		}
		for _, id := range l {
			seen[id] = true
			if id[6]>>4 != 1 || id[8]>>6 != 2 || id[10]&1 != 1 {
				t.Fatalf("%s lacks version 1, variant or multicast bit", id)
			}
		}
	}
	if len(seen) != workers*each {
		t.Errorf("%d IDs of %d are unique", len(seen), workers*each)
	}
}

func TestNextClockGoesBack(t *testing.T) {
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	g := newIDs(func() time.Time { return at })
	a := g.Next()
	at = at.Add(-5 * time.Second)
	b := g.Next()
	if b.Compare(a) <= 0 {
		t.Error("a small step back broke the order")
	}
	at = at.AddDate(-10, 0, 0)
	c := g.Next()
	if d := c.Time().Sub(at); d < 0 || d > time.Millisecond {
		t.Errorf("after a large step back the ID is for %v, want %v", c.Time(), at)
	}
	if bytes.Equal(a[8:10], c[8:10]) {
		t.Error("clock sequence did not change")
	}
	if d := g.Next(); d.Compare(c) <= 0 {
		t.Error("no order after the step")
	}
}

func TestNextAt(t *testing.T) {
	g := NewIDs()
	at := time.Date(2001, 2, 3, 4, 5, 6, 700, time.UTC)
	a, b := g.NextAt(at), g.NextAt(at)
	if a == b {
		t.Error("equal IDs")
	}
	if !a.Time().Equal(at) {
		t.Errorf("Time = %v, want %v", a.Time(), at)
	}
	for _, edge := range []time.Time{{}, time.Unix(1<<40, 0)} {
		if id := g.NextAt(edge); id[6]>>4 != 1 || id[8]>>6 != 2 {
			t.Errorf("NextAt(%v) = %s", edge, id)
		}
	}
	if g.NextAt(time.Time{}).Compare(a) >= 0 || g.NextAt(time.Unix(1<<40, 0)).Compare(a) <= 0 {
		t.Error("times out of range are not at the ends")
	}
}

func TestKeyOrder(t *testing.T) {
	g := NewIDs()
	// Each step changes another field of the timestamp.
	at := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	prev := g.NextAt(at)
	for _, d := range []time.Duration{100, 409600, 430 * time.Second, 400 * 24 * time.Hour} {
		at = at.Add(d)
		next := g.NextAt(at)
		if prev.Compare(next) != -1 || next.Compare(prev) != 1 || next.Compare(next) != 0 {
			t.Errorf("order after %v", d)
		}
		prev = next
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("c232ab00-9414-11ec-b3c8-9f6bdeced846")
	f.Add("c232ab00941411ecb3c89f6bdeced846")
	f.Add("../../../../../../../../etc/pass")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		if err != nil {
			return
		}
		if got := strings.ToLower(strings.ReplaceAll(s, "-", "")); got != id.String() {
			t.Errorf("ParseID(%q).String() = %s", s, id)
		}
		if FromKey(id.Key()) != id {
			t.Errorf("key of %s is no permutation", id)
		}
		_ = id.Time()
	})
}

func BenchmarkNext(b *testing.B) {
	g := NewIDs()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			g.Next()
		}
	})
}
