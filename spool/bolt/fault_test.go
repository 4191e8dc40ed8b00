package bolt

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"example.com/svc/spool"
)

// failing returns a commit that fails with err while on is set. The transaction
// is ended as a failing Commit of the database ends it.
func failing(on *atomic.Bool, err error) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		if on.Load() {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}
}

func TestFailedFlushRefusesWrites(t *testing.T) {
	var on atomic.Bool
	s := openTest(t, t.TempDir(), Options{Log: quiet(), commit: failing(&on, syscall.EIO)})
	defer s.Close()
	ids := spool.NewIDs()
	a := ids.Next()
	if err := s.Put(t.Context(), a, []byte("a")); err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	var wg sync.WaitGroup
	for range 20 { // S1: nobody in the batch hears of success
		wg.Go(func() {
			if err := s.Put(context.Background(), ids.Next(), []byte("b")); !errors.Is(err, spool.ErrUnhealthy) || !errors.Is(err, syscall.EIO) {
				t.Errorf("S1 Put with a failing flush: %v", err)
			}
		})
	}
	wg.Wait()
	on.Store(false)
	for name, err := range map[string]error{
		"Put":         s.Put(t.Context(), a, nil),
		"PutBatch":    s.PutBatch(t.Context(), []spool.Item{{ID: a}}),
		"Delete":      s.Delete(t.Context(), a),
		"DeleteBatch": s.DeleteBatch(t.Context(), []spool.ID{a}),
		"Quarantine":  s.Quarantine(t.Context(), a, ""),
		"Health":      s.Health(),
	} {
		if !errors.Is(err, spool.ErrUnhealthy) {
			t.Errorf("S4 %s after a failed flush: %v", name, err)
		}
	}
	if v, err := s.Get(t.Context(), a); err != nil || string(v) != "a" {
		t.Errorf("Get goes on: %q, %v", v, err)
	}
}

func TestFullDiskPassesByItself(t *testing.T) {
	var on atomic.Bool
	noSpace := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	s := openTest(t, t.TempDir(), Options{
		Log: quiet(), commit: failing(&on, noSpace), probeEvery: time.Millisecond,
	})
	defer s.Close()
	ids := spool.NewIDs()
	a := ids.Next()
	if err := s.Put(t.Context(), a, []byte("a")); err != nil {
		t.Fatal(err)
	}
	on.Store(true)
	for range 3 {
		if err := s.Put(t.Context(), ids.Next(), []byte("b")); !errors.Is(err, spool.ErrFull) || errors.Is(err, spool.ErrUnhealthy) {
			t.Errorf("Put on a full disk: %v", err)
		}
	}
	if err := s.Delete(t.Context(), a); !errors.Is(err, spool.ErrFull) {
		t.Errorf("Delete that finds no space: %v", err)
	}
	if v, err := s.Get(t.Context(), a); err != nil || string(v) != "a" {
		t.Errorf("Get on a full disk: %q, %v", v, err)
	}
	on.Store(false)
	// Removals are let through on a full disk, and the probe opens the rest.
	if err := s.Delete(t.Context(), a); err != nil {
		t.Errorf("Delete: %v", err)
	}
	for s.Health() != nil && t.Context().Err() == nil {
		if err := s.Delete(t.Context(), a); err != nil { // passes the time
			t.Fatal(err)
		}
	}
	if err := s.Put(t.Context(), a, []byte("again")); err != nil {
		t.Errorf("Put after space returned: %v", err)
	}
}

func TestFullAtFlushIsUnhealthy(t *testing.T) {
	var on atomic.Bool
	on.Store(true)
	s := openTest(t, t.TempDir(), Options{Log: quiet(), commit: failing(&on, syscall.ENOSPC)})
	defer s.Close()
	if err := s.Put(t.Context(), spool.NewIDs().Next(), nil); !errors.Is(err, spool.ErrUnhealthy) {
		t.Errorf("S4 Put whose flush found no space: %v", err)
	}
}

func TestPanicInTransaction(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Log: quiet(), commit: func(*bbolt.Tx) error { panic("assertion failed") }})
	var corrupt *spool.CorruptError
	err := s.Put(t.Context(), spool.NewIDs().Next(), nil)
	if !errors.As(err, &corrupt) || !errors.Is(err, spool.ErrUnhealthy) {
		t.Errorf("Put: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func TestSecondOpenInProcess(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, spool.ErrLocked) {
		t.Errorf("second Open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir, Options{})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestAbandonedWrite shows that a caller who leaves before the writer begins has
// stored nothing.
func TestAbandonedWrite(t *testing.T) {
	enter, leave := make(chan struct{}), make(chan struct{})
	var hold atomic.Bool
	s := openTest(t, t.TempDir(), Options{commit: func(tx *bbolt.Tx) error {
		if hold.Load() {
			enter <- struct{}{}
			<-leave
		}
		return tx.Commit()
	}})
	defer s.Close()
	hold.Store(true)
	ids := spool.NewIDs()
	first, second := ids.Next(), ids.Next()
	done := make(chan error)
	go func() { done <- s.Put(context.Background(), first, []byte("1")) }()
	<-enter // the writer is busy
	hold.Store(false)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- s.Put(ctx, second, []byte("2")) }()
	for queued := false; !queued; {
		s.queue.mu.Lock()
		queued = len(s.queue.pending) == 1
		s.queue.mu.Unlock()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("abandoned Put: %v", err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Errorf("first Put: %v", err)
	}
	if err := s.Delete(t.Context(), ids.Next()); err != nil { // behind the abandoned one
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), second); !errors.Is(err, spool.ErrNotFound) {
		t.Errorf("Get of the abandoned value: %v", err)
	}
}

func TestOptions(t *testing.T) {
	for _, n := range []int{1, 1000, 128 << 10, -4096} {
		if s, err := Open(t.TempDir(), Options{PageSize: n}); err == nil {
			t.Errorf("page size %d was taken", n)
			s.Close()
		}
	}
}
