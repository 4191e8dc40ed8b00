package spool_test

import (
	"context"
	"errors"
	"testing"

	"example.com/svc/spool"
	"example.com/svc/spool/memory"
	"example.com/svc/spool/spooltest"
)

// plain hides all abilities of a spool.
type plain struct{ spool.Spool }

// TestWithoutAbilities runs the contract through the fallbacks of PutAll,
// DeleteAll and Values.
func TestWithoutAbilities(t *testing.T) {
	spooltest.Run(t, func(testing.TB, string) spool.Spool { return plain{memory.New()} },
		spooltest.Corrupter(false, func(t testing.TB, s spool.Spool, _ string, id spool.ID) {
			if !s.(plain).Spool.(*memory.Spool).Corrupt(id) {
				t.Fatal("no such record")
			}
		}))
}

func TestDeleteAllTriesAll(t *testing.T) {
	m, ids, boom := memory.New(), spool.NewIDs(), errors.New("boom")
	a, b := ids.Next(), ids.Next()
	ctx := context.Background()
	if err := spool.PutAll(ctx, m, []spool.Item{{ID: a}, {ID: b}}); err != nil {
		t.Fatal(err)
	}
	m.SetFault(func(op memory.Op, id spool.ID) error {
		if op == memory.OpDelete && id == a {
			return boom
		}
		return nil
	})
	if err := spool.DeleteAll(ctx, plain{m}, []spool.ID{a, b}); !errors.Is(err, boom) || m.Len() != 1 {
		t.Errorf("DeleteAll: %v, %d left", err, m.Len())
	}
}
