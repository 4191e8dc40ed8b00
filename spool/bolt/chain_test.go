package bolt

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

func openPair(t *testing.T) (first, second *Spool) {
	t.Helper()
	open := func() *Spool {
		s, err := Open(t.TempDir(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	return open(), open()
}

// item makes a value that is borrowed when size is large.
func item(id spool.ID, size int) spool.Item {
	return spool.Item{ID: id, Value: bytes.Repeat([]byte{id[3] | 1}, size)}
}

func has(t *testing.T, s spool.Spool, it spool.Item) bool {
	t.Helper()
	v, err := s.Get(t.Context(), it.ID)
	if errors.Is(err, spool.ErrNotFound) {
		return false
	}
	if err != nil || !bytes.Equal(v, it.Value) {
		t.Fatalf("%d bytes, %v, want %d", len(v), err, len(it.Value))
	}
	return true
}

func TestPutThen(t *testing.T) {
	a, b := openPair(t)
	ids := spool.NewIDs()
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for i := range 20 {
				x, y := ids.Next(), ids.Next()
				big, small := item(x, i*5000), item(x, i)
				more := item(y, 40)
				if err := a.PutThen(t.Context(), []spool.Item{big, more}, b, []spool.Item{small}); err != nil {
					t.Error(err)
					return
				}
				if !has(t, a, big) || !has(t, a, more) || !has(t, b, small) {
					t.Error("a value is missing after PutThen")
				}
			}
		})
	}
	wg.Wait()
	other := memory.New()
	it := item(ids.Next(), 10)
	if err := a.PutThen(t.Context(), []spool.Item{it}, other, []spool.Item{it}); err != nil || !has(t, other, it) || !has(t, a, it) {
		t.Errorf("with a spool of another kind: %v", err)
	}
}

// The second spool gets nothing when the first fails, and an error of either is the answer.
func TestPutThenFails(t *testing.T) {
	ids := spool.NewIDs()
	for _, which := range []string{"first", "second"} {
		t.Run(which, func(t *testing.T) {
			a, b := openPair(t)
			broken, err := Open(t.TempDir(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := broken.Close(); err != nil {
				t.Fatal(err)
			}
			it := item(ids.Next(), 50_000)
			if which == "first" {
				err = broken.PutThen(t.Context(), []spool.Item{it}, b, []spool.Item{it})
			} else {
				err = a.PutThen(t.Context(), []spool.Item{it}, broken, []spool.Item{it})
			}
			if !errors.Is(err, spool.ErrClosed) {
				t.Errorf("got %v, want ErrClosed", err)
			}
			if has(t, b, it) {
				t.Error("the second spool has the value")
			}
		})
	}
}

// Whatever a caller without patience writes next comes after both halves.
func TestPutThenCancelled(t *testing.T) {
	a, b := openPair(t)
	ids := spool.NewIDs()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 60 {
				it := item(ids.Next(), 20_000)
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				err := a.PutThen(ctx, []spool.Item{it}, b, []spool.Item{it})
				if err == nil {
					continue
				}
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if err := errors.Join(b.Delete(t.Context(), it.ID), a.Delete(t.Context(), it.ID)); err != nil {
					t.Error(err)
				}
				if has(t, a, it) || has(t, b, it) {
					t.Errorf("writer %d, %d: a value came after its removal", i, n)
				}
			}
		})
	}
	wg.Wait()
}
