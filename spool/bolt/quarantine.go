package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"example.com/svc/spool"
)

// maxReason is how much of a reason is kept, in bytes.
const maxReason = 1024

// Quarantine implements [spool.Quarantiner]. The record moves to a bucket of its
// own, where its bytes follow the time and the reason:
//
//	8 bytes  seconds since 1970, big-endian
//	2 bytes  length of the reason, big-endian
//	n bytes  the reason
//	rest     the record as it was
func (s *Spool) Quarantine(ctx context.Context, id spool.ID, reason string) error {
	if err := s.admit(ctx, true); err != nil {
		return err
	}
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	key := id.Key()
	o := newOp()
	o.puts = true
	o.one[0].key = key // what the log then knows of it: it is removed
	o.entries = o.one[:]
	o.move = func(values, quarantine *bbolt.Bucket) error {
		raw := values.Get(key[:])
		if raw == nil {
			return fmt.Errorf("quarantine %s: %w", id, spool.ErrNotFound)
		}
		b := make([]byte, 0, 10+len(reason)+len(raw))
		b = binary.BigEndian.AppendUint64(b, uint64(time.Now().Unix()))
		b = binary.BigEndian.AppendUint16(b, uint16(len(reason)))
		b = append(append(b, reason...), raw...)
		if err := quarantine.Put(key[:], b); err != nil {
			return fmt.Errorf("quarantine %s: %w", id, err)
		}
		if err := values.Delete(key[:]); err != nil {
			return fmt.Errorf("quarantine %s: %w", id, err)
		}
		return nil
	}
	return s.wait(ctx, o)
}

// Quarantined implements [spool.Quarantiner].
func (s *Spool) Quarantined(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	n := 0
	err := s.view(func(_, quarantine *bbolt.Bucket) error {
		c := quarantine.Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			n++
		}
		return nil
	})
	return n, err
}
