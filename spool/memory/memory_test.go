package memory

import (
	"context"
	"errors"
	"testing"

	"example.com/svc/spool"
	"example.com/svc/spool/spooltest"
)

func TestSpool(t *testing.T) {
	spooltest.Run(t, func(testing.TB, string) spool.Spool { return New() },
		spooltest.Corrupter(false, func(t testing.TB, s spool.Spool, _ string, id spool.ID) {
			if !s.(*Spool).Corrupt(id) {
				t.Fatal("no such record")
			}
		}))
}

func TestFaultAndReopen(t *testing.T) {
	s, ids, boom := New(), spool.NewIDs(), errors.New("boom")
	ctx := context.Background()
	a, b := ids.Next(), ids.Next()
	s.SetFault(func(op Op, id spool.ID) error {
		if op == OpPut && id == b {
			return boom
		}
		return nil
	})
	if err := s.Put(ctx, a, nil); err != nil {
		t.Error(err)
	}
	if err := s.PutBatch(ctx, []spool.Item{{ID: ids.Next()}, {ID: b}}); !errors.Is(err, boom) || s.Len() != 1 {
		t.Errorf("PutBatch: %v, %d values", err, s.Len())
	}
	s.SetFault(nil)
	if err := s.Put(ctx, b, nil); err != nil {
		t.Error(err)
	}
	_ = s.Close()
	s.Reopen()
	if _, err := s.Get(ctx, a); err != nil || s.Len() != 2 {
		t.Errorf("after Reopen: %v", err)
	}
}

func BenchmarkPutDelete(b *testing.B) {
	spooltest.Benchmark(b, func(testing.TB, string) spool.Spool { return New() })
}
