package spool

import (
	"context"
	"errors"
	"iter"
)

// Spool is a durable store of opaque values under IDs. Every implementation
// passes spooltest.Run. All methods are safe for use by many goroutines; after
// Close they return an error that is [ErrClosed].
//
// A context bounds how long a call waits. When a write ends early because of its
// context, the outcome is unknown: the value may or may not be stored. Writes
// of one goroutine keep their order, so a Delete after such a Put removes it.
type Spool interface {
	// Put stores value under id, replacing what was there, and returns once
	// value is on stable storage (S1). The caller may reuse value after return.
	// Errors: ErrFull, ErrUnhealthy, ErrTooLarge, ErrClosed, or the cause from
	// the storage; after an error the value is not to be considered stored.
	Put(ctx context.Context, id ID, value []byte) error

	// Get returns the value of id in a fresh slice owned by the caller.
	// Errors: ErrNotFound, *CorruptError, ErrClosed.
	Get(ctx context.Context, id ID) ([]byte, error)

	// Delete removes id and returns once that is committed; a missing id is no
	// error. A crash may undo it: callers bear seeing id again (S2).
	Delete(ctx context.Context, id ID) error

	// All enumerates the IDs in time order. It pages through the store in
	// chunks, so it neither blocks writers for long nor pins old state; an ID
	// added or removed after the start may or may not be seen. An error that is
	// a *CorruptError concerns the ID it comes with and the enumeration goes
	// on; any other error ends it.
	All(ctx context.Context) iter.Seq2[ID, error]

	// Close waits for writes in progress and releases the store. A second
	// Close returns nil.
	Close() error
}

// Item is a value and the ID it is stored under.
type Item struct {
	// ID names the value.
	ID ID
	// Value is the content, without its frame.
	Value []byte
}

// Batcher is the ability to store or remove several values with one wait for
// the storage.
type Batcher interface {
	// PutBatch stores all items as [Spool.Put] does. On an error none of them
	// may be considered stored, though some may be there: a caller who gives
	// up on new IDs removes them.
	PutBatch(ctx context.Context, items []Item) error
	// DeleteBatch removes all ids as [Spool.Delete] does. On an error any of
	// them may be left.
	DeleteBatch(ctx context.Context, ids []ID) error
}

// Quarantiner is the ability to set a record aside, so that it is neither
// enumerated nor lost.
type Quarantiner interface {
	// Quarantine moves the record of id, intact or not, out of the way and
	// keeps its bytes for inspection. A missing id is ErrNotFound.
	Quarantine(ctx context.Context, id ID, reason string) error
	// Quarantined returns how many records are set aside.
	Quarantined(ctx context.Context) (int, error)
}

// Loader is the ability to enumerate values along with their IDs, which at start
// is much cheaper than one Get for each ID.
type Loader interface {
	// Values enumerates as [Spool.All] does, with values that the caller owns.
	// A corrupt record yields its ID with a *CorruptError and the enumeration
	// goes on; any other error ends it.
	Values(ctx context.Context) iter.Seq2[Item, error]
}

// Healther is the ability to say whether writes are accepted.
type Healther interface {
	// Health returns nil, or an error that is ErrUnhealthy or ErrFull and says
	// why writes are refused. It costs a few nanoseconds.
	Health() error
}

// Chainer is the ability to store items here and then, when they are on stable
// storage, others in a second spool, with one wait of the caller for both.
type Chainer interface {
	// PutThen does what PutBatch(items) here and, after its success,
	// PutBatch(next) in then would do. On an error none of either may be
	// considered stored. Unlike those calls it may borrow the values of items:
	// after an error they must not be changed any more, since a write whose
	// outcome is unknown may still read them.
	PutThen(ctx context.Context, items []Item, then Spool, next []Item) error
}

// PutAllThen stores items in s and then next in then, through the [Chainer]
// ability of s or with one PutAll after the other.
func PutAllThen(ctx context.Context, s Spool, items []Item, then Spool, next []Item) error {
	if c, ok := s.(Chainer); ok {
		return c.PutThen(ctx, items, then, next)
	}
	if err := PutAll(ctx, s, items); err != nil {
		return err
	}
	return PutAll(ctx, then, next)
}

// PutAll stores items through the [Batcher] ability of s, or one by one until
// the first error. See [Batcher] for what an error means.
func PutAll(ctx context.Context, s Spool, items []Item) error {
	if len(items) == 1 {
		return s.Put(ctx, items[0].ID, items[0].Value)
	}
	if b, ok := s.(Batcher); ok {
		return b.PutBatch(ctx, items)
	}
	for _, it := range items {
		if err := s.Put(ctx, it.ID, it.Value); err != nil {
			return err
		}
	}
	return nil
}

// DeleteAll removes ids through the [Batcher] ability of s, or one by one. It
// tries all of them and returns the joined errors.
func DeleteAll(ctx context.Context, s Spool, ids []ID) error {
	if b, ok := s.(Batcher); ok {
		return b.DeleteBatch(ctx, ids)
	}
	var errs []error
	for _, id := range ids {
		if err := s.Delete(ctx, id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Values enumerates IDs with values through the [Loader] ability of s, or by one
// Get for each ID. See [Loader] for the errors it yields.
func Values(ctx context.Context, s Spool) iter.Seq2[Item, error] {
	if l, ok := s.(Loader); ok {
		return l.Values(ctx)
	}
	return func(yield func(Item, error) bool) {
		for id, err := range s.All(ctx) {
			var value []byte
			if err == nil {
				value, err = s.Get(ctx, id)
			}
			if errors.Is(err, ErrNotFound) {
				continue // removed since All saw it
			}
			var corrupt *CorruptError
			goOn := err == nil || errors.As(err, &corrupt)
			if !yield(Item{ID: id, Value: value}, err) || !goOn {
				return
			}
		}
	}
}
