package spooltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"example.com/svc/spool"
)

// testConcurrent lets goroutines store, read, replace and remove; each knows what
// must be there of its own, and all together what must be left.
func (s *suite) testConcurrent(t *testing.T) {
	sp, ids := s.fixture(t)
	const workers, rounds = 16, 40
	var mu sync.Mutex
	var left []spool.ID
	var wg sync.WaitGroup
	errs := make(chan error, workers)
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				id := ids.Next()
				if err := lifeOf(t.Context(), sp, id, (w*rounds+i)*37%9000); err != nil {
					errs <- err
					return
				}
				if i%2 == 0 {
					if err := sp.Delete(t.Context(), id); err != nil {
						errs <- err
						return
					}
					continue
				}
				mu.Lock()
				left = append(left, id)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	slices.SortFunc(left, spool.ID.Compare)
	if got := all(t, sp); !slices.Equal(got, left) {
		t.Errorf("All yields %d ids, want %d", len(got), len(left))
	}
}

// lifeOf stores, reads, replaces and reads id.
func lifeOf(ctx context.Context, sp spool.Spool, id spool.ID, n int) error {
	for _, size := range []int{n, n/2 + 1} {
		value := valueOf(id, size)
		if err := sp.Put(ctx, id, value); err != nil {
			return err
		}
		got, err := sp.Get(ctx, id)
		if err != nil {
			return err
		}
		if !bytes.Equal(got, value) {
			return fmt.Errorf("%s has %s, want %s", id, brief(got), brief(value))
		}
	}
	return nil
}

// testEnumerateWhileWriting checks that writers go on while an enumeration is
// under way, and that it sees what was there all the time, in order.
func (s *suite) testEnumerateWhileWriting(t *testing.T) {
	sp, ids := s.fixture(t)
	var old []spool.Item
	for range 500 {
		old = append(old, spool.Item{ID: ids.Next(), Value: []byte("old")})
	}
	if err := spool.PutAll(t.Context(), sp, old); err != nil {
		t.Fatal(err)
	}
	var seen []spool.ID
	for id, err := range sp.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, id)
		if len(seen)%100 == 0 { // inside the loop: a spool that blocks writers hangs here
			fresh := ids.Next()
			put(t, sp, fresh, valueOf(fresh, 100<<10))
			if err := sp.Delete(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
		if len(seen) > 10000 {
			t.Fatal("the enumeration does not end")
		}
	}
	if !slices.IsSortedFunc(seen, spool.ID.Compare) {
		t.Error("not in time order")
	}
	for _, it := range old {
		if _, found := slices.BinarySearchFunc(seen, it.ID, spool.ID.Compare); !found {
			t.Errorf("%s was not seen", it.ID)
		}
	}
}

// testCloseWhileWriting checks that each Put is either stored or refused.
func (s *suite) testCloseWhileWriting(t *testing.T) {
	dir := t.TempDir()
	sp, ids := s.open(t, dir), spool.NewIDs()
	var mu sync.Mutex
	var stored []spool.ID
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				id := ids.Next()
				err := sp.Put(t.Context(), id, []byte("x"))
				if errors.Is(err, spool.ErrClosed) {
					return
				}
				if err != nil {
					t.Errorf("Put: %v", err)
					return
				}
				mu.Lock()
				stored = append(stored, id)
				mu.Unlock()
			}
		})
	}
	for range 20 {
		put(t, sp, ids.Next(), []byte("y"))
	}
	if err := sp.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	wg.Wait()
	if !s.durable {
		return
	}
	sp = s.openIn(t, dir)
	for _, id := range stored {
		want(t, sp, id, []byte("x"))
	}
}
