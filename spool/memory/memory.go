package memory

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"example.com/svc/spool"
)

const shardCount = 64

// Op names a method for [Spool.SetFault].
type Op string

// The operations that can be made to fail.
const (
	OpPut    Op = "put"
	OpGet    Op = "get"
	OpDelete Op = "delete"
)

// Fault decides whether an operation fails: a non-nil error is its result and
// nothing is changed. It may be called from many goroutines at once.
type Fault func(op Op, id spool.ID) error

// Spool is a spool in memory. Make one with [New].
type Spool struct {
	shards      [shardCount]shard
	quarantined atomic.Int64
	closed      atomic.Bool
	fault       atomic.Pointer[Fault]
}

type shard struct {
	mu     sync.RWMutex // protects the maps
	values map[spool.ID]record
	aside  map[spool.ID]record
}

type record struct {
	value   []byte
	corrupt bool
}

var (
	_ spool.Spool       = (*Spool)(nil)
	_ spool.Batcher     = (*Spool)(nil)
	_ spool.Quarantiner = (*Spool)(nil)
	_ spool.Loader      = (*Spool)(nil)
)

// New returns an empty spool.
func New() *Spool {
	s := new(Spool)
	for i := range s.shards {
		s.shards[i].values = make(map[spool.ID]record)
		s.shards[i].aside = make(map[spool.ID]record)
	}
	return s
}

// SetFault makes operations fail as f says; nil ends that.
func (s *Spool) SetFault(f Fault) {
	if f == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&f)
}

// Corrupt makes the record of id answer with a *spool.CorruptError from now on.
// It reports whether there is one.
func (s *Spool) Corrupt(id spool.ID) bool {
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r, ok := sh.values[id]
	if ok {
		r.corrupt = true
		sh.values[id] = r
	}
	return ok
}

// Len returns how many values are stored.
func (s *Spool) Len() int {
	n := 0
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		n += len(sh.values)
		sh.mu.RUnlock()
	}
	return n
}

// shard picks by the low bits of the time, which differ from ID to ID.
func (s *Spool) shard(id spool.ID) *shard { return &s.shards[(id[3]^id[15])%shardCount] }

// check refuses what must not begin.
func (s *Spool) check(ctx context.Context, op Op, id spool.ID) error {
	if s.closed.Load() {
		return spool.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("spool %s: %w", op, err)
	}
	if f := s.fault.Load(); f != nil {
		return (*f)(op, id)
	}
	return nil
}

// Put implements [spool.Spool].
func (s *Spool) Put(ctx context.Context, id spool.ID, value []byte) error {
	if err := s.checkPut(ctx, id, value); err != nil {
		return err
	}
	s.store(id, value)
	return nil
}

func (s *Spool) checkPut(ctx context.Context, id spool.ID, value []byte) error {
	if err := s.check(ctx, OpPut, id); err != nil {
		return err
	}
	if len(value) > spool.MaxValue {
		return fmt.Errorf("put %s of %d bytes: %w", id, len(value), spool.ErrTooLarge)
	}
	return nil
}

func (s *Spool) store(id spool.ID, value []byte) {
	r := record{value: append(make([]byte, 0, len(value)), value...)}
	sh := s.shard(id)
	sh.mu.Lock()
	sh.values[id] = r
	sh.mu.Unlock()
}

// Get implements [spool.Spool].
func (s *Spool) Get(ctx context.Context, id spool.ID) ([]byte, error) {
	if err := s.check(ctx, OpGet, id); err != nil {
		return nil, err
	}
	sh := s.shard(id)
	sh.mu.RLock()
	r, ok := sh.values[id]
	sh.mu.RUnlock()
	switch {
	case !ok:
		return nil, fmt.Errorf("get %s: %w", id, spool.ErrNotFound)
	case r.corrupt:
		return nil, corruptError(id)
	}
	return append(make([]byte, 0, len(r.value)), r.value...), nil
}

func corruptError(id spool.ID) error {
	return &spool.CorruptError{ID: id, Err: fmt.Errorf("made corrupt by a test")}
}

// Delete implements [spool.Spool].
func (s *Spool) Delete(ctx context.Context, id spool.ID) error {
	if err := s.check(ctx, OpDelete, id); err != nil {
		return err
	}
	s.remove(id)
	return nil
}

func (s *Spool) remove(id spool.ID) {
	sh := s.shard(id)
	sh.mu.Lock()
	delete(sh.values, id)
	sh.mu.Unlock()
}

// PutBatch implements [spool.Batcher].
func (s *Spool) PutBatch(ctx context.Context, items []spool.Item) error {
	for _, it := range items {
		if err := s.checkPut(ctx, it.ID, it.Value); err != nil {
			return err
		}
	}
	for _, it := range items {
		s.store(it.ID, it.Value)
	}
	return nil
}

// DeleteBatch implements [spool.Batcher].
func (s *Spool) DeleteBatch(ctx context.Context, ids []spool.ID) error {
	for _, id := range ids {
		if err := s.Delete(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// All implements [spool.Spool] over the IDs that are stored at its start.
func (s *Spool) All(ctx context.Context) iter.Seq2[spool.ID, error] {
	return func(yield func(spool.ID, error) bool) {
		if s.closed.Load() {
			yield(spool.ID{}, spool.ErrClosed)
			return
		}
		for _, id := range s.sorted() {
			if err := ctx.Err(); err != nil {
				yield(spool.ID{}, err)
				return
			}
			if !yield(id, nil) {
				return
			}
		}
	}
}

// sorted returns the IDs in time order.
func (s *Spool) sorted() []spool.ID {
	var keys [][16]byte
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.RLock()
		for id := range sh.values {
			keys = append(keys, id.Key())
		}
		sh.mu.RUnlock()
	}
	slices.SortFunc(keys, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	ids := make([]spool.ID, len(keys))
	for i, k := range keys {
		ids[i] = spool.FromKey(k)
	}
	return ids
}

// Values implements [spool.Loader].
func (s *Spool) Values(ctx context.Context) iter.Seq2[spool.Item, error] {
	return func(yield func(spool.Item, error) bool) {
		for id, err := range s.All(ctx) {
			if err != nil {
				yield(spool.Item{}, err)
				return
			}
			sh := s.shard(id)
			sh.mu.RLock()
			r, ok := sh.values[id]
			sh.mu.RUnlock()
			if !ok {
				continue // removed meanwhile
			}
			it := spool.Item{ID: id}
			if r.corrupt {
				err = corruptError(id)
			} else {
				it.Value = append(make([]byte, 0, len(r.value)), r.value...)
			}
			if !yield(it, err) {
				return
			}
		}
	}
}

// Quarantine implements [spool.Quarantiner]. The reason is not kept.
func (s *Spool) Quarantine(ctx context.Context, id spool.ID, _ string) error {
	if err := s.check(ctx, OpPut, id); err != nil {
		return err
	}
	sh := s.shard(id)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r, ok := sh.values[id]
	if !ok {
		return fmt.Errorf("quarantine %s: %w", id, spool.ErrNotFound)
	}
	delete(sh.values, id)
	if _, again := sh.aside[id]; !again {
		s.quarantined.Add(1)
	}
	sh.aside[id] = r
	return nil
}

// Quarantined implements [spool.Quarantiner].
func (s *Spool) Quarantined(ctx context.Context) (int, error) {
	if s.closed.Load() {
		return 0, spool.ErrClosed
	}
	return int(s.quarantined.Load()), ctx.Err()
}

// Close implements [spool.Spool]. The values stay in memory, see [Spool.Reopen].
func (s *Spool) Close() error {
	s.closed.Store(true)
	return nil
}

// Reopen makes a closed spool usable again with what it held, as a test of a
// restart wants it.
func (s *Spool) Reopen() { s.closed.Store(false) }
