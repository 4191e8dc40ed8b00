package mta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"example.com/svc/spool"
)

// Recover enumerates the messages that were stored before start, with metadata and without data (flows SP-3). Records
// that cannot be read are quarantined and skipped; data without metadata is removed at the end. Any other error ends
// the enumeration. Messages may be received meanwhile.
//
// A message was stored before start when its ID says so, or when another Store made its ID: the clock may have been
// wrong when it was received. Data of this Store's own IDs are never removed, whatever the clock did.
func (s *Store) Recover(ctx context.Context, start time.Time) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		r := recovery{s: s, ctx: ctx, start: start}
		r.data.next, r.data.stop = iter.Pull2(s.Data.All(ctx))
		defer r.data.stop()
		for it, err := range spool.Values(ctx, s.Meta) {
			m, err := r.message(it, err)
			if err == nil && m == nil {
				continue
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
		if err := r.data.rest(r.orphan); err != nil {
			yield(nil, fmt.Errorf("read the data spool: %w", err))
			return
		}
		r.removeOrphans()
	}
}

// recovery is one run of Recover.
type recovery struct {
	s       *Store
	ctx     context.Context
	start   time.Time
	data    cursor
	orphans []spool.ID
}

// message returns the message of one meta record; nil when the record is passed over. An error ends the enumeration.
func (r *recovery) message(it spool.Item, err error) (*Message, error) {
	var corrupt *spool.CorruptError
	if err != nil && (!errors.As(err, &corrupt) || it.ID.IsZero()) {
		return nil, fmt.Errorf("read the meta spool: %w", err)
	}
	if !r.stored(it.ID) {
		return nil, nil
	}
	// Corrupt metadata is looked up too, so that its data do not pass for orphans.
	found, seekErr := r.data.seek(it.ID, r.orphan)
	if seekErr != nil {
		return nil, fmt.Errorf("read the data spool: %w", seekErr)
	}
	if err == nil && !found {
		// Ask by name, since a wrong conclusion would set good mail aside.
		_, getErr := r.s.Data.Get(r.ctx, it.ID)
		switch {
		case errors.Is(getErr, spool.ErrNotFound):
			err = errors.New("metadata without data")
		case getErr != nil && !errors.As(getErr, &corrupt):
			return nil, fmt.Errorf("read the data spool: %w", getErr)
		}
	}
	var m *Message
	if err == nil {
		m, err = r.s.fromRecord(it.ID, it.Value)
	}
	if err != nil {
		_ = r.s.Quarantine(r.ctx, it.ID, err) // logged; it stays where it is
		return nil, nil
	}
	return m, nil
}

func (r *recovery) own(id spool.ID) bool { return node(id) == r.s.node }

// stored reports whether the record of id was there before start.
func (r *recovery) stored(id spool.ID) bool { return !r.own(id) || id.Time().Before(r.start) }

// orphan notes data without metadata. Data of an own ID belong to a message that is being received.
func (r *recovery) orphan(id spool.ID) {
	if !r.own(id) {
		r.orphans = append(r.orphans, id)
	}
}

// removeOrphans removes data that lost its metadata, in batches, after asking for the metadata by name.
func (r *recovery) removeOrphans() {
	const batch = 512
	old := r.orphans[:0]
	for _, id := range r.orphans {
		if _, err := r.s.Meta.Get(r.ctx, id); errors.Is(err, spool.ErrNotFound) {
			old = append(old, id)
		}
	}
	if len(old) > 0 {
		r.s.log.Info("removing data without metadata", "count", len(old))
	}
	for len(old) > 0 {
		n := min(batch, len(old))
		if err := spool.DeleteAll(r.ctx, r.s.Data, old[:n]); err != nil {
			r.s.log.Warn("data without metadata stays", "err", err)
			return
		}
		old = old[n:]
	}
}

// cursor walks the IDs of a spool in step with another enumeration in the same order.
type cursor struct {
	next func() (spool.ID, error, bool)
	stop func()
	id   spool.ID
	have bool
}

// seek moves to want, calls skipped for the IDs before it, and reports whether want is there.
func (c *cursor) seek(want spool.ID, skipped func(spool.ID)) (bool, error) {
	for {
		if !c.have {
			ok, err := c.pull()
			if err != nil || !ok {
				return false, err
			}
		}
		switch cmp := c.id.Compare(want); {
		case cmp == 0:
			c.have = false
			return true, nil
		case cmp > 0:
			return false, nil
		}
		skipped(c.id)
		c.have = false
	}
}

// pull reads the next ID. A corrupt data record counts as present: whoever loads it learns of it. One that lost even
// its ID is passed over.
func (c *cursor) pull() (bool, error) {
	for {
		id, err, ok := c.next()
		if !ok {
			return false, nil
		}
		var corrupt *spool.CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			return false, err
		}
		if !id.IsZero() {
			c.id, c.have = id, true
			return true, nil
		}
	}
}

// rest calls each for the IDs that are left.
func (c *cursor) rest(each func(spool.ID)) error {
	for {
		if c.have {
			each(c.id)
			c.have = false
		}
		ok, err := c.pull()
		if err != nil || !ok {
			return err
		}
	}
}
