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
	var value []byte
	err := s.view(func(values, _ *bbolt.Bucket) (err error) {
		raw := values.Get(key[:])
		if raw == nil {
			return spool.ErrNotFound
		}
		value, err = copyValue(raw)
		return err
	})
	if err != nil {
		return nil, s.named(id, err)
	}
	s.trim.touched(s, 1)
	return value, nil
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
		var ids []spool.ID
		var from []byte
		for {
			ids = ids[:0]
			err := s.chunk(ctx, from, func(key, _ []byte) bool {
				ids = append(ids, spool.FromKey([16]byte(key)))
				return len(ids) < chunkKeys
			})
			for _, id := range ids {
				if !yield(id, nil) {
					return
				}
			}
			if err != nil {
				yield(spool.ID{}, err)
				return
			}
			if len(ids) < chunkKeys {
				return
			}
			from = after(ids[len(ids)-1])
		}
	}
}

// Values implements [spool.Loader].
func (s *Spool) Values(ctx context.Context) iter.Seq2[spool.Item, error] {
	return func(yield func(spool.Item, error) bool) {
		var from []byte
		for {
			var c valueChunk
			err := s.chunk(ctx, from, c.add)
			for i, it := range c.items {
				var itemErr error
				if c.errs[i] != nil {
					itemErr = s.named(it.ID, c.errs[i])
				}
				if !yield(it, itemErr) {
					return
				}
			}
			if err != nil {
				yield(spool.Item{}, err)
				return
			}
			if !c.full() {
				return
			}
			from = after(c.items[len(c.items)-1].ID)
		}
	}
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
