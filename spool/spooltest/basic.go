package spooltest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/svc/spool"
)

func (s *suite) testBasics(t *testing.T) {
	sp, ids := s.fixture(t)
	id := ids.Next()
	wantMissing(t, sp, id)
	if err := sp.Delete(t.Context(), id); err != nil {
		t.Errorf("Delete of a missing id: %v", err)
	}
	put(t, sp, id, []byte("one"))
	want(t, sp, id, []byte("one"))
	put(t, sp, id, []byte("another"))
	want(t, sp, id, []byte("another"))
	if err := sp.Delete(t.Context(), id); err != nil {
		t.Errorf("Delete: %v", err)
	}
	wantMissing(t, sp, id)
	if got := all(t, sp); len(got) != 0 {
		t.Errorf("All of an empty spool: %v", got)
	}
}

func (s *suite) testSizes(t *testing.T) {
	sp, ids := s.fixture(t)
	for _, n := range []int{0, 1, 15, 4083, 4084, 4096, 65535, 65536, 1<<20 - 12, 1 << 20, 20 << 20} {
		id := ids.Next()
		value := valueOf(id, n)
		put(t, sp, id, value)
		want(t, sp, id, value)
	}
	id := ids.Next()
	put(t, sp, id, nil)
	want(t, sp, id, nil)
}

func (s *suite) testBuffers(t *testing.T) {
	sp, ids := s.fixture(t)
	id := ids.Next()
	value := []byte("original")
	put(t, sp, id, value)
	copy(value, "changed!")
	got, err := sp.Get(t.Context(), id)
	if err != nil || string(got) != "original" {
		t.Fatalf("Get after the caller reused its buffer: %q, %v", got, err)
	}
	copy(got, "changed!")
	_ = append(got, "and more"...)
	want(t, sp, id, []byte("original"))
}

func (s *suite) testIDs(t *testing.T) {
	sp, ids := s.fixture(t)
	var high spool.ID
	for i := range high {
		high[i] = 0xff
	}
	list := []spool.ID{{1}, ids.NextAt(time.Time{}), ids.NextAt(time.Now().AddDate(-20, 0, 0)), ids.Next(), high}
	for _, id := range list {
		put(t, sp, id, valueOf(id, 100))
	}
	for _, id := range list {
		want(t, sp, id, valueOf(id, 100))
	}
	slices.SortFunc(list, spool.ID.Compare)
	if got := all(t, sp); !slices.Equal(got, list) {
		t.Errorf("All: %v, want %v", got, list)
	}
}

func (s *suite) testOrder(t *testing.T) {
	sp, ids := s.fixture(t)
	var list []spool.ID
	var items []spool.Item
	for range 3000 {
		id := ids.Next()
		list = append(list, id)
		items = append(items, spool.Item{ID: id, Value: []byte("v")})
	}
	for i := range items { // a fixed shuffle: 1237 has no factor in common with 3000
		j := i * 1237 % len(items)
		items[i], items[j] = items[j], items[i]
	}
	for chunk := range slices.Chunk(items, 500) {
		if err := spool.PutAll(t.Context(), sp, chunk); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(t, sp); !slices.Equal(got, list) {
		t.Errorf("All yields %d ids, %d stored, or not in time order", len(got), len(list))
	}
	n := 0
	for range sp.All(t.Context()) {
		if n++; n == 3 {
			break // an enumeration may be left
		}
	}
}

func (s *suite) testValues(t *testing.T) {
	sp, ids := s.fixture(t)
	var list []spool.ID
	for i := range 700 {
		id := ids.Next()
		list = append(list, id)
		put(t, sp, id, valueOf(id, i*17))
	}
	i := 0
	for it, err := range spool.Values(t.Context(), sp) {
		if err != nil {
			t.Fatal(err)
		}
		if it.ID != list[i] || !bytes.Equal(it.Value, valueOf(it.ID, i*17)) {
			t.Fatalf("item %d: %s %s", i, it.ID, brief(it.Value))
		}
		i++
	}
	if i != len(list) {
		t.Errorf("Values yields %d items of %d", i, len(list))
	}
}

func (s *suite) testBatches(t *testing.T) {
	sp, ids := s.fixture(t)
	var list []spool.ID
	var items []spool.Item
	for i := range 300 {
		id := ids.Next()
		list = append(list, id)
		items = append(items, spool.Item{ID: id, Value: valueOf(id, i*31)})
	}
	if err := spool.PutAll(t.Context(), sp, items); err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		want(t, sp, it.ID, it.Value)
	}
	if err := spool.DeleteAll(t.Context(), sp, append(list[100:], ids.Next())); err != nil {
		t.Fatal(err)
	}
	if got := all(t, sp); !slices.Equal(got, list[:100]) {
		t.Errorf("after DeleteAll: %d ids, want 100", len(got))
	}
	if err := errors.Join(spool.PutAll(t.Context(), sp, nil), spool.DeleteAll(t.Context(), sp, nil)); err != nil {
		t.Errorf("empty batches: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	fresh := []spool.Item{{ID: ids.Next(), Value: []byte("a")}, {ID: ids.Next(), Value: []byte("b")}}
	if err := spool.PutAll(ctx, sp, fresh); !errors.Is(err, context.Canceled) {
		t.Errorf("PutAll with an ended context: %v", err)
	}
	for _, it := range fresh {
		wantMissing(t, sp, it.ID)
	}
}

func (s *suite) testQuarantine(t *testing.T) {
	sp, ids := s.fixture(t)
	q, ok := sp.(spool.Quarantiner)
	if !ok {
		t.Skip("no such ability")
	}
	a, b := ids.Next(), ids.Next()
	put(t, sp, a, []byte("a"))
	put(t, sp, b, []byte("b"))
	if err := q.Quarantine(t.Context(), a, "a test\nwith two lines"); err != nil {
		t.Fatal(err)
	}
	wantMissing(t, sp, a)
	want(t, sp, b, []byte("b"))
	if got := all(t, sp); !slices.Equal(got, []spool.ID{b}) {
		t.Errorf("All: %v", got)
	}
	if n, err := q.Quarantined(t.Context()); n != 1 || err != nil {
		t.Errorf("Quarantined = %d, %v", n, err)
	}
	if err := q.Quarantine(t.Context(), ids.Next(), "missing"); !errors.Is(err, spool.ErrNotFound) {
		t.Errorf("Quarantine of a missing id: %v", err)
	}
}

func (s *suite) testContext(t *testing.T) {
	sp, ids := s.fixture(t)
	kept, id := ids.Next(), ids.Next()
	put(t, sp, kept, []byte("kept"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sp.Put(ctx, id, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Put: %v", err)
	}
	if _, err := sp.Get(ctx, kept); !errors.Is(err, context.Canceled) {
		t.Errorf("Get: %v", err)
	}
	if err := sp.Delete(ctx, kept); !errors.Is(err, context.Canceled) {
		t.Errorf("Delete: %v", err)
	}
	var last error
	for _, err := range sp.All(ctx) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("All: %v", last)
	}
	wantMissing(t, sp, id)
	want(t, sp, kept, []byte("kept"))
}

func (s *suite) testClosed(t *testing.T) {
	sp := s.open(t, t.TempDir())
	id := spool.NewIDs().Next()
	put(t, sp, id, []byte("x"))
	if err := errors.Join(sp.Close(), sp.Close()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	ctx := t.Context()
	_, getErr := sp.Get(ctx, id)
	var allErr error
	for _, allErr = range sp.All(ctx) {
	}
	for name, err := range map[string]error{
		"Put": sp.Put(ctx, id, nil), "Get": getErr, "Delete": sp.Delete(ctx, id), "All": allErr,
		"PutAll":    spool.PutAll(ctx, sp, []spool.Item{{ID: id}}),
		"DeleteAll": spool.DeleteAll(ctx, sp, []spool.ID{id}),
	} {
		if !errors.Is(err, spool.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

func (s *suite) testCorrupt(t *testing.T) {
	dir := t.TempDir()
	sp, ids := s.open(t, dir), spool.NewIDs()
	var list []spool.ID
	for range 5 {
		id := ids.Next()
		list = append(list, id)
		put(t, sp, id, valueOf(id, 3000))
	}
	bad := list[2]
	if s.offline {
		if err := sp.Close(); err != nil {
			t.Fatal(err)
		}
		s.corrupt(t, nil, dir, bad)
		sp = s.open(t, dir)
	} else {
		s.corrupt(t, sp, dir, bad)
	}
	defer sp.Close()
	var corrupt *spool.CorruptError
	if _, err := sp.Get(t.Context(), bad); !errors.As(err, &corrupt) || corrupt.ID != bad {
		t.Errorf("Get: %v, want a CorruptError for %s", err, bad)
	}
	seen := 0
	for it, err := range spool.Values(t.Context(), sp) {
		if (it.ID == bad) != errors.As(err, &corrupt) || it.ID != list[seen] {
			t.Errorf("Values: item %d is %s with %v", seen, it.ID, err)
		}
		seen++
	}
	if seen != len(list) {
		t.Errorf("Values yields %d items, want %d", seen, len(list))
	}
	if q, ok := sp.(spool.Quarantiner); ok {
		if err := q.Quarantine(t.Context(), bad, "corrupt"); err != nil {
			t.Errorf("Quarantine of a corrupt record: %v", err)
		}
		wantMissing(t, sp, bad)
	}
	for _, id := range list {
		if id != bad {
			want(t, sp, id, valueOf(id, 3000))
		}
	}
}
