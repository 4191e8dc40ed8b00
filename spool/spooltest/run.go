package spooltest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"example.com/svc/spool"
)

// Open opens the spool in dir, which exists. It fails the test when it cannot.
type Open func(t testing.TB, dir string) spool.Spool

// Option adds to what [Run] tests.
type Option func(*suite)

// Durable says that values survive closing and killing, and adds those cases.
// Not for spools in memory.
func Durable() Option { return func(s *suite) { s.durable = true } }

// Corrupter damages the stored record of id so that Get must notice. The spool
// that was opened last is s; the case where it is closed first and then damaged
// in dir is chosen by offline.
func Corrupter(offline bool, corrupt func(t testing.TB, s spool.Spool, dir string, id spool.ID)) Option {
	return func(s *suite) { s.corrupt, s.offline = corrupt, offline }
}

type suite struct {
	open    Open
	durable bool
	offline bool
	corrupt func(t testing.TB, s spool.Spool, dir string, id spool.ID)
}

// Run tests the spool that open opens. Each case gets a directory of its own.
func Run(t *testing.T, open func(t testing.TB, dir string) spool.Spool, options ...Option) {
	s := &suite{open: open}
	for _, o := range options {
		o(s)
	}
	if s.childMode(t) {
		return
	}
	for _, c := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"put get delete", s.testBasics},
		{"S3 values by size", s.testSizes},
		{"buffers are not shared", s.testBuffers},
		{"unusual ids", s.testIDs},
		{"All in time order", s.testOrder},
		{"All while writing", s.testEnumerateWhileWriting},
		{"Values", s.testValues},
		{"batches", s.testBatches},
		{"quarantine", s.testQuarantine},
		{"many goroutines", s.testConcurrent},
		{"ended context", s.testContext},
		{"closed", s.testClosed},
		{"close while writing", s.testCloseWhileWriting},
	} {
		t.Run(c.name, c.run)
	}
	if s.corrupt != nil {
		t.Run("S3 corrupt record", s.testCorrupt)
	}
	if s.durable {
		t.Run("S1 reopen", s.testReopen)
		t.Run("ErrLocked", s.testLocked)
		t.Run("S1 kill", s.testKill)
	}
}

// fixture opens a spool that is closed with the test.
func (s *suite) fixture(t *testing.T) (spool.Spool, *spool.IDs) {
	t.Helper()
	return s.openIn(t, t.TempDir()), spool.NewIDs()
}

func (s *suite) openIn(t *testing.T, dir string) spool.Spool {
	t.Helper()
	sp := s.open(t, dir)
	t.Cleanup(func() {
		if err := sp.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return sp
}

// valueOf returns n bytes that depend on id and every position.
func valueOf(id spool.ID, n int) []byte {
	b := make([]byte, 0, n+16)
	for i := uint64(0); len(b) < n; i++ {
		b = append(b, id[:8]...)
		b = binary.BigEndian.AppendUint64(b, i)
	}
	return b[:n]
}

func put(t testing.TB, sp spool.Spool, id spool.ID, value []byte) {
	t.Helper()
	if err := sp.Put(t.Context(), id, value); err != nil {
		t.Fatalf("Put %s: %v", id, err)
	}
}

// want checks that id has value.
func want(t testing.TB, sp spool.Spool, id spool.ID, value []byte) {
	t.Helper()
	got, err := sp.Get(t.Context(), id)
	if err != nil {
		t.Errorf("Get %s: %v", id, err)
	} else if !bytes.Equal(got, value) {
		t.Errorf("Get %s: %s, want %s", id, brief(got), brief(value))
	}
}

func wantMissing(t testing.TB, sp spool.Spool, id spool.ID) {
	t.Helper()
	if _, err := sp.Get(t.Context(), id); !errors.Is(err, spool.ErrNotFound) {
		t.Errorf("Get %s: %v, want ErrNotFound", id, err)
	}
}

func brief(b []byte) string {
	return fmt.Sprintf("%d bytes %.16x...", len(b), b)
}

// all returns the enumerated IDs.
func all(t testing.TB, sp spool.Spool) []spool.ID {
	t.Helper()
	var ids []spool.ID
	for id, err := range sp.All(t.Context()) {
		if err != nil {
			t.Fatalf("All: %v", err)
		}
		ids = append(ids, id)
	}
	return ids
}
