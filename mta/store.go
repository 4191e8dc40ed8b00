package mta

import (
	"context"
	"errors"
	"fmt"
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
	node    [6]byte // the last bytes of every ID of ids (RFC 9562 section 5.1)
	metrics *metrics
	log     *slog.Logger
	zones   sync.Map // zone name to *time.Location; bounded by the time zone database
}

// NewStore joins two spools. set may be nil. log may be nil for the default logger.
func NewStore(meta, data spool.Spool, set *metric.Set, log *slog.Logger) *Store {
	if log == nil {
		log = slog.Default()
	}
	s := &Store{Meta: meta, Data: data, ids: spool.NewIDs(), metrics: newMetrics(set), log: log}
	s.node = node(s.ids.Next())
	return s
}

// node returns the part of id that tells makers of IDs apart.
func node(id spool.ID) [6]byte { return [6]byte(id[10:]) }

// New makes a message in memory. It owns data from now on.
func (s *Store) New(env Envelope, data []byte) *Message {
	return s.NewBuffer(env, data, 0)
}

// NewBuffer makes a message in memory whose content is buf[off:]; the bytes before off are room for headers. It owns
// buf from now on. It panics when off lies outside buf.
func (s *Store) NewBuffer(env Envelope, buf []byte, off int) *Message {
	_ = buf[off:] // before anything is counted
	m := s.alloc(s.ids.Next())
	m.env = env
	m.keepMeta(new(Meta))
	m.SetBuffer(buf, off)
	return m
}

func (s *Store) alloc(id spool.ID) *Message {
	s.metrics.count.Inc()
	return &Message{id: id, store: s}
}

var noHeaders [headroom]byte

// Split makes a new message with its own ID for rs, and with copies of sender, content, metadata, scheduling, due time
// and what is known about the reception.
func (s *Store) Split(ctx context.Context, m *Message, rs []Address) (*Message, error) {
	data, err := m.Data(ctx)
	if err != nil {
		return nil, err
	}
	meta, err := m.Meta(ctx)
	if err != nil {
		return nil, err
	}
	buf := append(noHeaders[:], data...) // appending makes memory that is not cleared first where the data go
	c := s.NewBuffer(Envelope{Sender: m.env.Sender, Recipients: rs}, buf, headroom)
	*c.meta = meta.Clone()
	c.due, c.traits = m.due, m.traits
	if m.sched != nil {
		c.sched = m.sched.clone()
	}
	if m.reception != nil {
		r := *m.reception
		c.reception = &r
	}
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
	m.env, m.sched = rec.env, rec.sched
	m.keepMeta(rec.meta)
	m.metaSaved, m.dataSaved, m.spooled = true, true, true
	if m.sched != nil && m.sched.Window != nil {
		m.sched.Window.loc = s.zone(m.sched.Window.Zone)
	}
	return m, nil
}

// zone returns a time zone, nil when this machine does not know it. Reading one from the zone database costs much more
// than all the rest of a record.
func (s *Store) zone(name string) *time.Location {
	if loc, ok := s.zones.Load(name); ok {
		return loc.(*time.Location)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil
	}
	s.zones.Store(name, loc)
	return loc
}

// Remove takes messages out of the store: meta first, so that a crash leaves at most data without meta, which the next
// start removes. Messages that were never saved are skipped. The others cannot be saved again ([ErrRemoved]); after an
// error they can, and Remove may be called again.
func (s *Store) Remove(ctx context.Context, ms ...*Message) error {
	ids := make([]spool.ID, 0, len(ms))
	for _, m := range ms {
		if m.spooled {
			ids = append(ids, m.id)
		}
	}
	err := s.RemoveIDs(ctx, ids)
	for _, m := range ms {
		switch {
		case !m.spooled:
		case err == nil:
			m.removed = true
		default: // any part may be gone: whoever saves it has to write all that is here
			m.metaSaved = false
			m.dataSaved = m.dataSaved && m.buf == nil
		}
	}
	return err
}

// RemoveIDs takes the messages with ids out of the store, meta first.
func (s *Store) RemoveIDs(ctx context.Context, ids []spool.ID) error {
	if err := s.RemoveMeta(ctx, ids); err != nil {
		return err
	}
	return s.RemoveData(ctx, ids)
}

// RemoveMeta removes the metadata of messages, the first half of RemoveIDs: once it returns, no start finds them again.
func (s *Store) RemoveMeta(ctx context.Context, ids []spool.ID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := spool.DeleteAll(ctx, s.Meta, ids); err != nil {
		return fmt.Errorf("remove metadata of %s: %w", naming(ids[0], len(ids)), err)
	}
	return nil
}

// RemoveData removes the data of messages whose metadata is gone, the second half of RemoveIDs.
func (s *Store) RemoveData(ctx context.Context, ids []spool.ID) error {
	if len(ids) == 0 {
		return nil
	}
	if err := spool.DeleteAll(ctx, s.Data, ids); err != nil {
		return fmt.Errorf("remove data of %s: %w", naming(ids[0], len(ids)), err)
	}
	return nil
}

// naming tells of n messages by the first.
func naming(first spool.ID, n int) string {
	if n == 1 {
		return "message " + first.String()
	}
	return fmt.Sprintf("message %s and %d more", first, n-1)
}

// Quarantine sets both records of id aside, counts and logs it. It is used for records that cannot be read. The data go
// first: while they cannot be set aside, as with a spool that is no [spool.Quarantiner], the metadata stay too, since
// data without metadata would be removed at the next start. The error, which is logged here, says that the message stays
// in the spool.
func (s *Store) Quarantine(ctx context.Context, id spool.ID, cause error) error {
	s.metrics.quarantined.Inc()
	s.log.Error("message quarantined", "id", id.String(), "err", cause)
	for _, sp := range []spool.Spool{s.Data, s.Meta} {
		err := errors.ErrUnsupported
		if q, ok := sp.(spool.Quarantiner); ok {
			err = q.Quarantine(ctx, id, cause.Error())
		}
		if err != nil && !errors.Is(err, spool.ErrNotFound) {
			s.log.Error("quarantine failed, the message stays in the spool", "id", id.String(), "err", err)
			return fmt.Errorf("quarantine message %s: %w", id, err)
		}
	}
	return nil
}
