package bolt

import (
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"example.com/svc/spool"
	"example.com/svc/spool/spooltest"
)

func openTest(t testing.TB, dir string, o Options) *Spool {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSpool(t *testing.T) {
	spooltest.Run(t, func(t testing.TB, dir string) spool.Spool { return openTest(t, dir, Options{}) },
		spooltest.Durable(),
		spooltest.Corrupter(false, func(t testing.TB, s spool.Spool, _ string, id spool.ID) {
			key := id.Key()
			if err := s.(*Spool).Quarantine(t.Context(), spool.ID{1}, ""); !errors.Is(err, spool.ErrNotFound) {
				t.Fatal(err) // what concerns the database moves all of the log there
			}
			err := s.(*Spool).db.Update(func(tx *bbolt.Tx) error {
				b := tx.Bucket(bucketValues)
				raw := append([]byte(nil), b.Get(key[:])...)
				raw[len(raw)/2] ^= 1
				return b.Put(key[:], raw)
			})
			if err != nil {
				t.Fatal(err)
			}
		}))
}
