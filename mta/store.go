package mta

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"example.com/svc/mta/metric"
	"example.com/svc/spool"
)

// Store is where messages keep their bytes: two spools with the same IDs. It is safe for concurrent use on different
// messages.
type Store struct {
	// Meta holds envelope, metadata and scheduling; Data holds the content.
	Meta, Data spool.Spool

	ids     *spool.IDs
	metrics *metrics
	log     *slog.Logger
}

// NewStore joins two spools. set may be nil. log may be nil for the default logger.
func NewStore(meta, data spool.Spool, set *metric.Set, log *slog.Logger) *Store {
	if log == nil {
		log = slog.Default()
	}
	return &Store{Meta: meta, Data: data, ids: spool.NewIDs(), metrics: newMetrics(set), log: log}
}

// New makes a message in memory. It owns data from now on.
func (s *Store) New(env Envelope, data []byte) *Message {
	m := s.NewBuffer(env, data, 0)
	return m
}

// NewBuffer makes a message in memory whose content is buf[off:]; the bytes before off are room for headers. It owns
// buf from now on.
func (s *Store) NewBuffer(env Envelope, buf []byte, off int) *Message {
	m := s.alloc(s.ids.Next())
	m.env = env
	m.meta = new(Meta)
	s.metrics.metaResident.Inc()
	m.SetBuffer(buf, off)
	return m
}

func (s *Store) alloc(id spool.ID) *Message {
	s.metrics.count.Inc()
	return &Message{id: id, store: s}
}

// Split makes a new message with its own ID and copies of content and metadata for rs.
func (s *Store) Split(ctx context.Context, m *Message, rs []Address) (*Message, error) {
	data, err := m.Data(ctx)
	if err != nil {
		return nil, err
	}
	meta, err := m.Meta(ctx)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, headroom+len(data))
	copy(buf[headroom:], data)
	c := s.NewBuffer(Envelope{Sender: m.env.Sender, Recipients: rs}, buf, headroom)
	*c.meta = meta.Clone()
	return c, nil
}

// Load reads the message id from the store, with its metadata and without its data. Errors are spool.ErrNotFound and
// *spool.CorruptError among others.
func (s *Store) Load(ctx context.Context, id spool.ID) (*Message, error) {
	b, err := s.Meta.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("load message %s: %w", id, err)
	}
	return s.fromRecord(id, b)
}

func (s *Store) fromRecord(id spool.ID, b []byte) (*Message, error) {
	rec, err := decodeMeta(id, b)
	if err != nil {
		return nil, err
	}
	m := s.alloc(id)
	m.env, m.meta, m.sched = rec.env, &rec.meta, rec.sched
	m.metaSaved, m.dataSaved, m.spooled = true, true, true
	s.metrics.metaResident.Inc()
	return m, nil
}

// saveScratch is what one SaveAll needs, pooled.
type saveScratch struct {
	items []spool.Item
	bufs  []byte
	ends  []int
}

var scratchPool = sync.Pool{New: func() any { return new(saveScratch) }}

// SaveAll writes what changed in ms, all data first and then all metadata (M2), and returns once it is on stable
// storage (S1). On an error none of the messages that were new counts as stored; what was written of them is removed
// again.
func (s *Store) SaveAll(ctx context.Context, ms ...*Message) error {
	start := time.Now()
	sc := scratchPool.Get().(*saveScratch)
	defer func() {
		clear(sc.items)
		sc.items, sc.bufs, sc.ends = sc.items[:0], sc.bufs[:0], sc.ends[:0]
		scratchPool.Put(sc)
	}()
	if err := s.saveData(ctx, sc, ms); err != nil {
		return err
	}
	if err := s.saveMeta(ctx, sc, ms); err != nil {
		s.dropOrphans(ctx, ms)
		return err
	}
	s.metrics.save.ObserveSince(start)
	return nil
}

func (s *Store) saveData(ctx context.Context, sc *saveScratch, ms []*Message) error {
	sc.items = sc.items[:0]
	for _, m := range ms {
		if !m.dataSaved {
			sc.items = append(sc.items, spool.Item{ID: m.id, Value: m.buf[m.off:]})
		}
	}
	if len(sc.items) == 0 {
		return nil
	}
	if err := putItems(ctx, s.Data, sc.items); err != nil {
		return fmt.Errorf("save data of message %s: %w", sc.items[0].ID, err)
	}
	for _, m := range ms {
		m.dataSaved = true
	}
	return nil
}

func (s *Store) saveMeta(ctx context.Context, sc *saveScratch, ms []*Message) error {
	sc.items = sc.items[:0]
	for _, m := range ms {
		if m.metaSaved {
			continue
		}
		if _, err := m.Meta(ctx); err != nil {
			return err
		}
		sc.bufs = appendMeta(sc.bufs, m)
		sc.ends = append(sc.ends, len(sc.bufs))
		sc.items = append(sc.items, spool.Item{ID: m.id})
	}
	if len(sc.items) == 0 {
		return nil
	}
	begin := 0
	for i, end := range sc.ends {
		sc.items[i].Value = sc.bufs[begin:end]
		begin = end
	}
	if err := putItems(ctx, s.Meta, sc.items); err != nil {
		return fmt.Errorf("save metadata of message %s: %w", sc.items[0].ID, err)
	}
	for _, m := range ms {
		m.metaSaved, m.spooled = true, true
	}
	return nil
}

func putItems(ctx context.Context, sp spool.Spool, items []spool.Item) error {
	if len(items) == 1 {
		return sp.Put(ctx, items[0].ID, items[0].Value)
	}
	return spool.PutAll(ctx, sp, items)
}

// dropOrphans removes the data of messages that have no meta record. It is best effort: what stays is removed at the
// next start.
func (s *Store) dropOrphans(ctx context.Context, ms []*Message) {
	var ids []spool.ID
	for _, m := range ms {
		if !m.spooled && m.dataSaved {
			m.dataSaved = false
			ids = append(ids, m.id)
		}
	}
	if len(ids) == 0 {
		return
	}
	if err := spool.DeleteAll(context.WithoutCancel(ctx), s.Data, ids); err != nil {
		s.log.Warn("data of a message that was not saved stays until the next start", "id", ids[0], "err", err)
	}
}

// Remove takes messages out of the store: meta first, so that a crash leaves at most data without meta, which the next
// start removes. Messages that were never saved are skipped.
func (s *Store) Remove(ctx context.Context, ms ...*Message) error {
	ids := make([]spool.ID, 0, len(ms))
	for _, m := range ms {
		if m.spooled {
			ids = append(ids, m.id)
		}
	}
	return s.RemoveIDs(ctx, ids)
}

// RemoveIDs takes the messages with ids out of the store, meta first.
func (s *Store) RemoveIDs(ctx context.Context, ids []spool.ID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := spool.DeleteAll(ctx, s.Meta, ids); err != nil {
		return fmt.Errorf("remove metadata of message %s: %w", ids[0], err)
	}
	if err := spool.DeleteAll(ctx, s.Data, ids); err != nil {
		return fmt.Errorf("remove data of message %s: %w", ids[0], err)
	}
	return nil
}

// Quarantine sets both records of id aside, counts and logs it. It is used for records that cannot be read.
func (s *Store) Quarantine(ctx context.Context, id spool.ID, cause error) {
	s.metrics.quarantined.Inc()
	s.log.Error("message quarantined", "id", id.String(), "err", cause)
	for _, sp := range []spool.Spool{s.Meta, s.Data} {
		q, ok := sp.(spool.Quarantiner)
		if !ok {
			continue
		}
		if err := q.Quarantine(ctx, id, cause.Error()); err != nil && !errors.Is(err, spool.ErrNotFound) {
			s.log.Error("quarantine failed", "id", id.String(), "err", err)
		}
	}
}

// Recover enumerates the messages that were stored before start, with metadata and without data (flows SP-3). Records
// that cannot be read are quarantined and skipped; data without metadata is removed. Any other error ends the
// enumeration.
func (s *Store) Recover(ctx context.Context, start time.Time) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		data := newCursor(ctx, s.Data)
		defer data.stop()
		var orphans []spool.ID
		for it, err := range spool.Values(ctx, s.Meta) {
			if err != nil && !s.skipCorrupt(ctx, it.ID, err) {
				yield(nil, fmt.Errorf("read the meta spool: %w", err))
				return
			}
			if err != nil || !it.ID.Time().Before(start) {
				continue
			}
			found, err := data.seek(it.ID, func(id spool.ID) { orphans = append(orphans, id) })
			if err != nil {
				yield(nil, fmt.Errorf("read the data spool: %w", err))
				return
			}
			if !found {
				s.Quarantine(ctx, it.ID, errors.New("metadata without data"))
				continue
			}
			m, err := s.fromRecord(it.ID, it.Value)
			if err != nil {
				s.Quarantine(ctx, it.ID, err)
				continue
			}
			if !yield(m, nil) {
				return
			}
		}
		if err := data.rest(start, func(id spool.ID) { orphans = append(orphans, id) }); err != nil {
			yield(nil, fmt.Errorf("read the data spool: %w", err))
			return
		}
		s.removeOrphans(ctx, orphans, start)
	}
}

func (s *Store) skipCorrupt(ctx context.Context, id spool.ID, err error) bool {
	var corrupt *spool.CorruptError
	if !errors.As(err, &corrupt) || id.IsZero() {
		return false
	}
	s.Quarantine(ctx, id, err)
	return true
}

// removeOrphans removes data that lost its metadata, in batches. A record that is younger than start belongs to a
// message that is being received.
func (s *Store) removeOrphans(ctx context.Context, ids []spool.ID, start time.Time) {
	const batch = 512
	old := ids[:0]
	for _, id := range ids {
		if id.Time().Before(start) {
			old = append(old, id)
		}
	}
	if len(old) > 0 {
		s.log.Info("removing data without metadata", "count", len(old))
	}
	for len(old) > 0 {
		n := min(batch, len(old))
		if err := spool.DeleteAll(ctx, s.Data, old[:n]); err != nil {
			s.log.Warn("data without metadata stays", "err", err)
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

func newCursor(ctx context.Context, sp spool.Spool) *cursor {
	c := new(cursor)
	c.next, c.stop = iter.Pull2(sp.All(ctx))
	return c
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

// pull reads the next ID. A corrupt data record counts as present: whoever loads it learns of it.
func (c *cursor) pull() (bool, error) {
	id, err, ok := c.next()
	if !ok {
		return false, nil
	}
	var corrupt *spool.CorruptError
	if err != nil && !errors.As(err, &corrupt) {
		return false, err
	}
	c.id, c.have = id, true
	return true, nil
}

func (c *cursor) rest(start time.Time, each func(spool.ID)) error {
	for {
		if c.have {
			if !c.id.Time().Before(start) {
				return nil
			}
			each(c.id)
			c.have = false
		}
		ok, err := c.pull()
		if err != nil || !ok {
			return err
		}
	}
}
