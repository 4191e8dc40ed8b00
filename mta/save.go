package mta

import (
	"context"
	"fmt"
	"sync"
	"time"

	"example.com/svc/spool"
)

// unwindTimeout bounds how long a failed save waits for the removal of what it wrote.
const unwindTimeout = 10 * time.Second

// maxScratch is the largest buffer of encoded metadata that is kept for the next save.
const maxScratch = 1 << 20

// saveScratch is what one SaveAll needs, pooled.
type saveScratch struct {
	items []spool.Item
	bufs  []byte
	ends  []int
}

var scratchPool = sync.Pool{New: func() any { return new(saveScratch) }}

// reset forgets the items, so that a pooled scratch keeps no content alive.
func (sc *saveScratch) reset() {
	clear(sc.items)
	sc.items, sc.bufs, sc.ends = sc.items[:0], sc.bufs[:0], sc.ends[:0]
}

func (sc *saveScratch) release() {
	sc.reset()
	if cap(sc.bufs) <= maxScratch {
		scratchPool.Put(sc)
	}
}

// SaveAll writes what changed in ms, all data first and then all metadata (M2), and returns once it is on stable
// storage (S1). On an error none of the messages that were new counts as stored; what was written of them is removed
// again, as far as the spools allow. Errors are those of [spool.Spool].Put, ErrRemoved and ErrNoContent.
func (s *Store) SaveAll(ctx context.Context, ms ...*Message) error {
	for _, m := range ms {
		if m.removed {
			return fmt.Errorf("save message %s: %w", m.id, ErrRemoved)
		}
	}
	start := time.Now()
	sc := scratchPool.Get().(*saveScratch)
	defer sc.release()
	data, err := s.saveData(ctx, sc, ms)
	if err != nil {
		s.unwind(ctx, ms)
		return err
	}
	sc.reset()
	meta, err := s.saveMeta(ctx, sc, ms)
	if err != nil {
		s.unwind(ctx, ms)
		return err
	}
	if data || meta {
		s.metrics.save.ObserveSince(start)
	}
	return nil
}

// saveData reports whether there was anything to write.
func (s *Store) saveData(ctx context.Context, sc *saveScratch, ms []*Message) (bool, error) {
	for _, m := range ms {
		if m.dataSaved {
			continue
		}
		if m.buf == nil { // released: an empty value would pass for its content
			return false, fmt.Errorf("save data of message %s: %w", m.id, ErrNoContent)
		}
		sc.items = append(sc.items, spool.Item{ID: m.id, Value: m.buf[m.off:]})
	}
	if len(sc.items) == 0 {
		return false, nil
	}
	if err := putItems(ctx, s.Data, sc.items); err != nil {
		return false, fmt.Errorf("save data of %s: %w", naming(sc.items[0].ID, len(sc.items)), err)
	}
	for _, m := range ms {
		m.dataSaved = true
	}
	return true, nil
}

// saveMeta reports whether there was anything to write.
func (s *Store) saveMeta(ctx context.Context, sc *saveScratch, ms []*Message) (bool, error) {
	for _, m := range ms {
		if m.metaSaved {
			continue
		}
		_, err := m.Meta(ctx)
		if err == nil {
			sc.bufs, err = appendMeta(sc.bufs, m)
		}
		if err != nil {
			return false, fmt.Errorf("save metadata of message %s: %w", m.id, err)
		}
		sc.ends = append(sc.ends, len(sc.bufs))
		sc.items = append(sc.items, spool.Item{ID: m.id})
	}
	if len(sc.items) == 0 {
		return false, nil
	}
	begin := 0
	for i, end := range sc.ends { // only now, since bufs moved while it grew
		sc.items[i].Value = sc.bufs[begin:end]
		begin = end
	}
	if err := putItems(ctx, s.Meta, sc.items); err != nil {
		return false, fmt.Errorf("save metadata of %s: %w", naming(sc.items[0].ID, len(sc.items)), err)
	}
	for _, m := range ms {
		m.metaSaved, m.spooled = true, true
	}
	return true, nil
}

func putItems(ctx context.Context, sp spool.Spool, items []spool.Item) error {
	if len(items) == 1 {
		return sp.Put(ctx, items[0].ID, items[0].Value)
	}
	return spool.PutAll(ctx, sp, items)
}

// unwind removes what a failed save may have left of messages that are new to the store. A failed write leaves open
// whether the record is there (see [spool.Spool] and [spool.Batcher]), so both spools are cleaned, meta first as in
// Remove (M2). It is best effort: a crash amid it and a spool that refuses leave data without
// metadata, removed at the next start, or a whole message, which is sent though its sender was told to try again.
func (s *Store) unwind(ctx context.Context, ms []*Message) {
	var ids []spool.ID
	for _, m := range ms {
		if !m.spooled {
			m.dataSaved = false
			ids = append(ids, m.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unwindTimeout)
	defer cancel()
	err := spool.DeleteAll(ctx, s.Meta, ids)
	if err == nil {
		err = spool.DeleteAll(ctx, s.Data, ids)
	}
	if err != nil {
		s.log.Warn("records of messages that were not saved may stay until the next start",
			"id", ids[0].String(), "count", len(ids), "err", err)
	}
}
