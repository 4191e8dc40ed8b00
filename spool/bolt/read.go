package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"example.com/svc/spool"
)

const (
	// chunkKeys limits the IDs read in one transaction.
	chunkKeys = 2048
	// chunkItems and chunkBytes limit the values read in one transaction.
	chunkItems = 256
	chunkBytes = 1 << 20
)

// view runs fn in a short read transaction.
func (s *Spool) view(fn func(values, quarantine *bbolt.Bucket) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		if err := s.Health(); err != nil {
			return err
		}
		return spool.ErrClosed
	}
	return guard(s.file, func() error {
		tx, err := s.db.Begin(false)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // ends a read, cannot fail
		values, quarantine := tx.Bucket(bucketValues), tx.Bucket(bucketQuarantine)
		if values == nil || quarantine == nil {
			return &spool.CorruptError{Path: s.file, Err: errors.New("bucket is missing")}
		}
		return fn(values, quarantine)
	})
}

// Get implements [spool.Spool].
func (s *Spool) Get(ctx context.Context, id spool.ID) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	key := id.Key()
	value, err := s.get(key)
	if err != nil {
		return nil, s.named(id, err)
	}
	return value, nil
}

// get returns the value of key from the log or the database.
func (s *Spool) get(key [16]byte) (value []byte, err error) {
	raw, found, gone, err := s.logged(key)
	switch {
	case err != nil:
		return nil, err
	case found:
		return spool.ParseFrame(raw)
	case gone:
		return nil, spool.ErrNotFound
	}
	err = s.view(func(values, _ *bbolt.Bucket) (err error) {
		raw := values.Get(key[:])
		if raw == nil {
			return spool.ErrNotFound
		}
		value, err = copyValue(raw)
		return err
	})
	if err == nil {
		s.trim.touched(s, 1)
	}
	return value, err
}

// logged is lookup while the spool is open.
func (s *Spool) logged(key [16]byte) (raw []byte, found, gone bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.log.closed {
		return nil, false, false, spool.ErrClosed
	}
	return s.log.lookup(key)
}

// copyValue checks the frame raw and returns its value in memory of its own.
func copyValue(raw []byte) ([]byte, error) {
	value, err := spool.ParseFrame(raw)
	if err != nil {
		return nil, err
	}
	// The file may change under the map; what counts is the copy. Its frame was
	// checked on the map, which only this process writes to.
	return append(make([]byte, 0, len(value)), value...), nil
}

// named adds to err which record it is about.
func (s *Spool) named(id spool.ID, err error) error {
	if errors.Is(err, spool.ErrNotFound) {
		return fmt.Errorf("get %s: %w", id, err)
	}
	var corrupt *spool.CorruptError
	if errors.As(err, &corrupt) {
		corrupt.ID, corrupt.Path = id, s.file
	}
	return err
}

// All implements [spool.Spool]. Damage of the database itself, found while
// enumerating, comes with the zero ID and ends the enumeration; opening the
// spool again salvages it.
func (s *Spool) All(ctx context.Context) iter.Seq2[spool.ID, error] {
	return func(yield func(spool.ID, error) bool) {
		m := merge{s: s, extra: s.log.keys()}
		var keys [][16]byte
		var from []byte
		for {
			keys = keys[:0]
			err := s.chunk(ctx, from, func(key, _ []byte) bool {
				keys = append(keys, [16]byte(key))
				return len(keys) < chunkKeys
			})
			for _, key := range keys {
				if !m.before(key, yield) {
					return
				}
				if _, gone := s.log.covers(key); !gone && !yield(spool.FromKey(key), nil) {
					return
				}
			}
			if err != nil {
				yield(spool.ID{}, err)
				return
			}
			if len(keys) < chunkKeys {
				m.rest(yield)
				return
			}
			from = after(spool.FromKey(keys[len(keys)-1]))
		}
	}
}

// merge adds to an enumeration of the database the keys that were in the log when
// it began.
type merge struct {
	s     *Spool
	extra [][16]byte
}

// before yields the keys up to key, which comes next itself and is left out.
func (m *merge) before(key [16]byte, yield func(spool.ID, error) bool) bool {
	for len(m.extra) > 0 {
		k := m.extra[0]
		c := compareKeys(k, key)
		if c > 0 {
			break
		}
		m.extra = m.extra[1:]
		if c == 0 {
			break
		}
		if !m.one(k, yield) {
			return false
		}
	}
	return true
}

// one yields k unless it was removed. One that left the log since may be in the
// database.
func (m *merge) one(k [16]byte, yield func(spool.ID, error) bool) bool {
	if in, gone := m.s.log.covers(k); !in {
		if gone {
			return true
		}
		if _, err := m.s.get(k); errors.Is(err, spool.ErrNotFound) {
			return true
		}
	}
	return yield(spool.FromKey(k), nil)
}

func (m *merge) rest(yield func(spool.ID, error) bool) {
	for _, k := range m.extra {
		if !m.one(k, yield) {
			return
		}
	}
}

// Values implements [spool.Loader].
func (s *Spool) Values(ctx context.Context) iter.Seq2[spool.Item, error] {
	return func(yield func(spool.Item, error) bool) {
		m := merge{s: s, extra: s.log.keys()}
		fromLog := func(id spool.ID, _ error) bool { return s.yieldValue(id, yield) }
		var from []byte
		for {
			var c valueChunk
			err := s.chunk(ctx, from, c.add)
			for i, it := range c.items {
				if !m.before(it.ID.Key(), fromLog) || !s.yieldItem(it, c.errs[i], yield) {
					return
				}
			}
			if err != nil {
				yield(spool.Item{}, err)
				return
			}
			if !c.full() {
				m.rest(fromLog)
				return
			}
			from = after(c.items[len(c.items)-1].ID)
		}
	}
}

// yieldItem yields a record of the database unless the log knows better.
func (s *Spool) yieldItem(it spool.Item, err error, yield func(spool.Item, error) bool) bool {
	switch in, gone := s.log.covers(it.ID.Key()); {
	case gone:
		return true
	case in:
		return s.yieldValue(it.ID, yield)
	}
	if err != nil {
		err = s.named(it.ID, err)
	}
	return yield(it, err)
}

// yieldValue reads and yields id unless it was removed.
func (s *Spool) yieldValue(id spool.ID, yield func(spool.Item, error) bool) bool {
	value, err := s.get(id.Key())
	if errors.Is(err, spool.ErrNotFound) {
		return true
	}
	if err != nil {
		err = s.named(id, err)
	}
	return yield(spool.Item{ID: id, Value: value}, err)
}

// valueChunk collects the items of one transaction.
type valueChunk struct {
	items []spool.Item
	errs  []error
	size  int
}

func (c *valueChunk) add(key, raw []byte) bool {
	value, err := copyValue(raw)
	c.items = append(c.items, spool.Item{ID: spool.FromKey([16]byte(key)), Value: value})
	c.errs = append(c.errs, err)
	c.size += len(value)
	return !c.full()
}

func (c *valueChunk) full() bool { return len(c.items) >= chunkItems || c.size >= chunkBytes }

// chunk calls fn with the records from key from on, in one transaction, until fn
// returns false.
func (s *Spool) chunk(ctx context.Context, from []byte, fn func(key, raw []byte) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := 0
	err := s.view(func(values, _ *bbolt.Bucket) error {
		c := values.Cursor()
		for k, v := c.Seek(from); k != nil; k, v = c.Next() {
			if len(k) != 16 || v == nil {
				continue // no record of ours; the check at start reports such
			}
			n++
			if !fn(k, v) {
				return nil
			}
		}
		return nil
	})
	s.trim.touched(s, n)
	return err
}

// after returns the smallest key above that of id.
func after(id spool.ID) []byte {
	k := id.Key()
	return append(bytes.Clone(k[:]), 0)
}
