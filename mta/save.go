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
	data, meta []spool.Item
	bufs       []byte
	ends       []int
}

var scratchPool = sync.Pool{New: func() any { return new(saveScratch) }}

// release gives sc back without keeping content alive.
func (sc *saveScratch) release() {
	clear(sc.data)
	clear(sc.meta)
	sc.data, sc.meta, sc.bufs, sc.ends = sc.data[:0], sc.meta[:0], sc.bufs[:0], sc.ends[:0]
	if cap(sc.bufs) <= maxScratch {
		scratchPool.Put(sc)
	}
}

// SaveAll writes what changed in ms, all data first and then all metadata (M2), and returns once it is on stable
// storage (S1). On an error none of the messages that were new counts as stored; what was written of them is removed
// again, as far as the spools allow. Errors are those of [spool.Spool].Put, ErrRemoved and ErrNoContent.
func (s *Store) SaveAll(ctx context.Context, ms ...*Message) error {
	start := time.Now()
	sc := scratchPool.Get().(*saveScratch)
	defer sc.release()
	if err := sc.collect(ctx, ms); err != nil {
		return err
	}
	if len(sc.data)+len(sc.meta) == 0 {
		return nil
	}
	if err := s.put(ctx, sc); err != nil {
		s.unwind(ctx, ms)
		return fmt.Errorf("save %s: %w", naming(ms[0].id, len(ms)), err)
	}
	for _, m := range ms {
		m.dataSaved = true
		if !m.metaSaved {
			m.metaSaved, m.spooled = true, true
		}
	}
	s.metrics.save.ObserveSince(start)
	return nil
}

// collect finds what has to be written.
func (sc *saveScratch) collect(ctx context.Context, ms []*Message) error {
	for _, m := range ms {
		if m.removed {
			return fmt.Errorf("save message %s: %w", m.id, ErrRemoved)
		}
		if !m.dataSaved {
			if m.buf == nil { // released: an empty value would pass for its content
				return fmt.Errorf("save data of message %s: %w", m.id, ErrNoContent)
			}
			sc.data = append(sc.data, spool.Item{ID: m.id, Value: m.buf[m.off:]})
		}
		if m.metaSaved {
			continue
		}
		_, err := m.Meta(ctx)
		if err == nil {
			sc.bufs, err = appendMeta(sc.bufs, m)
		}
		if err != nil {
			return fmt.Errorf("save metadata of message %s: %w", m.id, err)
		}
		sc.ends = append(sc.ends, len(sc.bufs))
		sc.meta = append(sc.meta, spool.Item{ID: m.id})
	}
	begin := 0
	for i, end := range sc.ends { // only now, since bufs moved while it grew
		sc.meta[i].Value = sc.bufs[begin:end]
		begin = end
	}
	return nil
}

// put writes data, then metadata (M2).
func (s *Store) put(ctx context.Context, sc *saveScratch) error {
	switch {
	case len(sc.meta) == 0:
		return spool.PutAll(ctx, s.Data, sc.data)
	case len(sc.data) == 0:
		return spool.PutAll(ctx, s.Meta, sc.meta)
	}
	return spool.PutAllThen(ctx, s.Data, sc.data, s.Meta, sc.meta)
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
