package bolt

import (
	"context"
	"errors"
	"fmt"

	"example.com/svc/spool"
)

// Put implements [spool.Spool]. It waits for the transaction that carries value
// and, unless NoSync is set, for its flush (S1).
func (s *Spool) Put(ctx context.Context, id spool.ID, value []byte) error {
	if err := s.admit(ctx, true); err != nil {
		return err
	}
	if len(value) > spool.MaxValue {
		return fmt.Errorf("put %s of %d bytes: %w", id, len(value), spool.ErrTooLarge)
	}
	o := newOp()
	o.one[0] = entry{key: id.Key(), frame: newFrame(value)}
	o.entries, o.bytes, o.puts = o.one[:], len(value), true
	return s.wait(ctx, o)
}

// PutBatch implements [spool.Batcher]: all items in one transaction.
func (s *Spool) PutBatch(ctx context.Context, items []spool.Item) error {
	if err := s.admit(ctx, true); err != nil || len(items) == 0 {
		return err
	}
	if err := checkSizes(items); err != nil {
		return err
	}
	o := newOp()
	o.fill(items, false)
	return s.wait(ctx, o)
}

func checkSizes(items []spool.Item) error {
	for _, it := range items {
		if len(it.Value) > spool.MaxValue {
			return fmt.Errorf("put %s of %d bytes: %w", it.ID, len(it.Value), spool.ErrTooLarge)
		}
	}
	return nil
}

// fill makes o store items. With borrow, large values are not copied and must stay
// as they are until o was answered.
func (o *op) fill(items []spool.Item, borrow bool) {
	o.puts, o.entries = true, o.one[:]
	if len(items) > 1 {
		o.entries = make([]entry, len(items))
	}
	for i, it := range items {
		o.bytes += len(it.Value)
		if borrow && len(it.Value) >= borrowFrom {
			o.entries[i] = entry{key: it.ID.Key(), frame: newHeader(it.Value), rest: it.Value}
			continue
		}
		o.entries[i] = entry{key: it.ID.Key(), frame: newFrame(it.Value)}
	}
}

// PutThen implements [spool.Chainer]. When then is of this kind its writer takes
// over from the writer of s without the caller being woken between.
func (s *Spool) PutThen(ctx context.Context, items []spool.Item, then spool.Spool, next []spool.Item) error {
	t, ok := then.(*Spool)
	if !ok || t == s || len(items) == 0 || len(next) == 0 {
		if err := s.PutBatch(ctx, items); err != nil {
			return err
		}
		return spool.PutAll(ctx, then, next)
	}
	if err := s.admit(ctx, true); err != nil {
		return err
	}
	if err := t.admit(ctx, true); err != nil {
		return err
	}
	if err := errors.Join(checkSizes(items), checkSizes(next)); err != nil {
		return err
	}
	first, second := &op{to: t}, newOp() // first is not pooled: its writer may look at it after second was answered
	first.fill(items, true)
	second.fill(next, false)
	first.next = second
	return s.waitChain(ctx, first, second)
}

// waitChain queues first and waits for the outcome of second, which follows it.
func (s *Spool) waitChain(ctx context.Context, first, second *op) error {
	if !s.queue.add(first) {
		first.releaseFrames()
		second.releaseFrames()
		second.recycle()
		return spool.ErrClosed
	}
	select {
	case err := <-second.done:
		second.recycle()
		return err
	case <-ctx.Done():
	}
	if first.state.CompareAndSwap(opWaiting, opAbandoned) {
		first.releaseFrames()
		second.releaseFrames() // it is not queued and never will be
		return fmt.Errorf("spool write not begun: %w", ctx.Err())
	}
	// From here on second is either given up, or taken by its writer and so
	// before whatever this goroutine writes next.
	if second.state.CompareAndSwap(opWaiting, opAbandoned) {
		second.releaseFrames()
	}
	return fmt.Errorf("spool write abandoned, outcome unknown: %w", ctx.Err())
}

// Delete implements [spool.Spool].
func (s *Spool) Delete(ctx context.Context, id spool.ID) error {
	if err := s.admit(ctx, false); err != nil {
		return err
	}
	o := newOp()
	o.one[0] = entry{key: id.Key()}
	o.entries = o.one[:]
	return s.wait(ctx, o)
}

// DeleteBatch implements [spool.Batcher]: all ids in one transaction.
func (s *Spool) DeleteBatch(ctx context.Context, ids []spool.ID) error {
	if err := s.admit(ctx, false); err != nil || len(ids) == 0 {
		return err
	}
	o := newOp()
	o.entries = make([]entry, len(ids))
	for i, id := range ids {
		o.entries[i].key = id.Key()
	}
	return s.wait(ctx, o)
}

// admit refuses writes that cannot succeed before anything is copied. Removals
// are let through on a full disk: they make room.
func (s *Spool) admit(ctx context.Context, put bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("spool write not begun: %w", err)
	}
	if c := s.trouble.Load(); c != nil && (put || !c.full) {
		return c.err
	}
	return nil
}

// wait queues o and waits for its outcome or the end of ctx.
func (s *Spool) wait(ctx context.Context, o *op) error {
	if !s.queue.add(o) {
		o.releaseFrames()
		o.recycle()
		return spool.ErrClosed
	}
	select {
	case err := <-o.done:
		o.recycle()
		return err
	case <-ctx.Done():
	}
	if o.state.CompareAndSwap(opWaiting, opAbandoned) {
		// The writer will see the state and not touch the entries.
		o.releaseFrames()
		return fmt.Errorf("spool write not begun: %w", ctx.Err())
	}
	return fmt.Errorf("spool write abandoned, outcome unknown: %w", ctx.Err())
}
