package mta

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/svc/spool"
)

// Envelope is the sender and the recipients of a message.
type Envelope struct {
	Sender     Address
	Recipients []Address
}

// Message is one message and its envelope. It has one holder at a time (M1) and no lock. The envelope stays in memory;
// metadata and data may be dropped with [Message.Shrink] and come back from the store when asked for.
type Message struct {
	id    spool.ID
	store *Store
	env   Envelope

	// buf holds headroom and then the data, which begins at off. A nil buf means the data is not in memory.
	buf []byte
	off int
	// meta is nil when the metadata is not in memory.
	meta *Meta
	// sched limits when the message may be tried; nil for most.
	sched *Scheduling
	// reception is what the Reception record shows beyond the message; nil after it was written.
	reception *Record
	// due is when the next attempt is wanted, in Unix nanoseconds; 0 means at once.
	due int64

	attempts  uint16
	traits    Traits
	metaSaved bool // the store's meta record equals the state here
	dataSaved bool
	spooled   bool // the store has a meta record
	removed   bool // Store.Remove took it out: it may not be saved again
	released  bool // it does not count in the gauges any more
}

// Errors of a [Message].
var (
	// ErrRemoved says that the message was taken out of the store and cannot be saved again.
	ErrRemoved = errors.New("mta: message was removed")
	// ErrNoContent says that the content or the metadata were dropped before they had been saved.
	ErrNoContent = errors.New("mta: content of the message is gone")
)

// headroom is what Prepend leaves before the data so that the next trace header needs no copy.
const headroom = 512

// ID returns the name of the message, a time-ordered UUID.
func (m *Message) ID() spool.ID { return m.id }

// Created returns when the message was received: the time in its ID (flows SQ-23).
func (m *Message) Created() time.Time { return m.id.Time() }

// Envelope returns sender and recipients. Whoever changes them calls [Message.Touch] or uses the setters.
func (m *Message) Envelope() *Envelope { return &m.env }

// SetSender replaces the envelope sender.
func (m *Message) SetSender(a Address) {
	m.env.Sender = a
	m.metaSaved = false
}

// SetRecipients replaces the recipients.
func (m *Message) SetRecipients(rs []Address) {
	m.env.Recipients = rs
	m.metaSaved = false
}

// Touch says that envelope, metadata or scheduling changed and have to be saved again.
func (m *Message) Touch() { m.metaSaved = false }

// Data returns the content, loading it when it is not in memory. The slice belongs to the message and is valid until
// the next call that changes or shrinks it. Errors are those of [spool.Spool].Get, and ErrNoContent.
func (m *Message) Data(ctx context.Context) ([]byte, error) {
	if m.buf == nil {
		if err := m.loadData(ctx); err != nil {
			return nil, err
		}
	}
	return m.buf[m.off:len(m.buf):len(m.buf)], nil
}

// Size returns the length of the data in memory, 0 when it is not in memory.
func (m *Message) Size() int {
	if m.buf == nil {
		return 0
	}
	return len(m.buf) - m.off
}

// SetData replaces the content. The message owns data from now on.
func (m *Message) SetData(data []byte) { m.SetBuffer(data, 0) }

// SetBuffer replaces the content by buf[off:]; the bytes before off are room for headers that are prepended later.
// The message owns buf from now on. It panics when off lies outside buf.
func (m *Message) SetBuffer(buf []byte, off int) {
	m.keepData(buf, off)
	m.dataSaved, m.traits = false, 0
}

func (m *Message) keepData(buf []byte, off int) {
	_ = buf[off:] // a wrong offset is the caller's, not that of a later Save
	if buf == nil {
		buf = []byte{}
	}
	if m.buf == nil && !m.released {
		m.store.metrics.dataResident.Inc()
	}
	m.buf, m.off = buf, off
}

func (m *Message) dropData() {
	if m.buf != nil && !m.released {
		m.store.metrics.dataResident.Dec()
	}
	m.buf, m.off = nil, 0
}

func (m *Message) keepMeta(meta *Meta) {
	if m.meta == nil && !m.released {
		m.store.metrics.metaResident.Inc()
	}
	m.meta = meta
}

func (m *Message) dropMeta() {
	if m.meta != nil && !m.released {
		m.store.metrics.metaResident.Dec()
	}
	m.meta = nil
}

// Prepend puts header, which ends in CRLF, before the content.
func (m *Message) Prepend(ctx context.Context, header []byte) error {
	data, err := m.Data(ctx)
	if err != nil {
		return err
	}
	if m.off < len(header) {
		buf := make([]byte, headroom+len(header)+len(data))
		copy(buf[headroom+len(header):], data)
		m.buf, m.off = buf, headroom+len(header)
	}
	m.off -= len(header)
	copy(m.buf[m.off:], header)
	m.dataSaved, m.traits = false, m.traits.withHeader(header)
	return nil
}

// Meta returns the metadata, loading it when it is not in memory. Whoever changes it calls [Message.Touch] or uses
// [Message.SetMeta].
func (m *Message) Meta(ctx context.Context) (*Meta, error) {
	if m.meta == nil {
		if err := m.loadMeta(ctx); err != nil {
			return nil, err
		}
	}
	return m.meta, nil
}

// SetMeta gives one key a value; nil removes it. The value must be of the types a [Meta] holds.
func (m *Message) SetMeta(ctx context.Context, key string, value any) error {
	if err := CheckMetaValue(value); err != nil {
		return fmt.Errorf("set_meta %q: %w", key, err)
	}
	meta, err := m.Meta(ctx)
	if err != nil {
		return err
	}
	meta.Set(key, value)
	m.metaSaved = false
	return nil
}

// Queue computes the name of the scheduled queue (flows QN-1): the meta "queue" if set, else campaign, tenant, domain
// of the first recipient and routing domain.
func (m *Message) Queue(ctx context.Context) (QueueName, error) {
	meta, err := m.Meta(ctx)
	if err != nil {
		return QueueName{}, err
	}
	var parts [4]string
	for i, key := range [4]string{MetaQueue, MetaTenant, MetaCampaign, MetaRoutingDomain} {
		v, ok := meta.Get(key)
		if !ok {
			continue
		}
		s, ok := v.(string)
		if !ok {
			return QueueName{}, fmt.Errorf("queue name of message %s: meta %q is a %T, not a string", m.id, key, v)
		}
		parts[i] = s
	}
	if parts[0] != "" {
		return ParseQueueName(parts[0]), nil
	}
	q := QueueName{Tenant: parts[1], Campaign: parts[2], RoutingDomain: parts[3]}
	if len(m.env.Recipients) > 0 {
		q.Domain = strings.ToLower(m.env.Recipients[0].Domain)
	}
	return q, nil
}

// Attempts returns the number of attempts so far. It lives in memory only; after a restart it is inferred from age
// (flows SP-4).
func (m *Message) Attempts() int { return int(m.attempts) }

// SetAttempts sets the number of attempts.
func (m *Message) SetAttempts(n int) { m.attempts = uint16(min(max(n, 0), 0xffff)) }

// Due returns when the next attempt is wanted; the zero time means at once.
func (m *Message) Due() time.Time {
	if m.due == 0 {
		return time.Time{}
	}
	return time.Unix(0, m.due)
}

// Times that Unix nanoseconds can tell.
var (
	firstDue = time.Unix(0, math.MinInt64)
	lastDue  = time.Unix(0, math.MaxInt64)
)

// SetDue sets when the next attempt is wanted, the zero time for at once. It lives in memory only. Times outside the
// years 1678 to 2262 become at once and the last that can be told.
func (m *Message) SetDue(t time.Time) {
	switch {
	case t.Before(firstDue): // the zero time too
		m.due = 0
	case t.After(lastDue):
		m.due = math.MaxInt64
	default:
		m.due = t.UnixNano()
	}
}

// Scheduling returns the limits on when the message may be tried, nil when there are none.
func (m *Message) Scheduling() *Scheduling { return m.sched }

// SetScheduling replaces the limits; nil clears them.
func (m *Message) SetScheduling(s *Scheduling) {
	m.sched = s
	m.metaSaved = false
}

// SetReception keeps what is known about the reception (peer, TLS, session) for the Reception record, which is written
// by whoever takes responsibility for the message ([Inbound]).
func (m *Message) SetReception(r *Record) { m.reception = r }

// TakeReception returns what SetReception kept and forgets it; nil when nothing was kept.
func (m *Message) TakeReception() *Record {
	r := m.reception
	m.reception = nil
	return r
}

// Spooled reports whether the store has a record of the message.
func (m *Message) Spooled() bool { return m.spooled }

// Dirty reports whether Save would write something.
func (m *Message) Dirty() bool { return !m.removed && (!m.metaSaved || !m.dataSaved) }

// Save writes what changed since the last save, data first (M2), and returns once it is on stable storage (S1). The
// error is ErrRemoved after [Store.Remove].
func (m *Message) Save(ctx context.Context) error { return m.store.SaveAll(ctx, m) }

// Shrink saves the message if needed and drops metadata and data from memory. A message that was removed from the
// store is only dropped.
func (m *Message) Shrink(ctx context.Context) error {
	if err := m.ShrinkData(ctx); err != nil {
		return err
	}
	m.dropMeta()
	return nil
}

// ShrinkData saves the message if needed and drops the data from memory.
func (m *Message) ShrinkData(ctx context.Context) error {
	if m.Dirty() {
		if err := m.Save(ctx); err != nil {
			return err
		}
	}
	m.dropData()
	return nil
}

// Release says that the last holder is done with the object; it only moves the gauges and drops the content. The
// records in the store stay. A second call does nothing.
func (m *Message) Release() {
	if m.released {
		return
	}
	m.dropData()
	m.dropMeta()
	m.released = true
	m.store.metrics.count.Dec()
}

func (m *Message) loadData(ctx context.Context) error {
	if !m.dataSaved {
		return fmt.Errorf("load data of message %s: %w", m.id, ErrNoContent)
	}
	start := time.Now()
	b, err := m.store.Data.Get(ctx, m.id)
	if err != nil {
		return fmt.Errorf("load data of message %s: %w", m.id, err)
	}
	m.store.metrics.dataLoad.ObserveSince(start)
	m.keepData(b, 0)
	return nil
}

func (m *Message) loadMeta(ctx context.Context) error {
	if !m.spooled {
		return fmt.Errorf("load metadata of message %s: %w", m.id, ErrNoContent)
	}
	start := time.Now()
	b, err := m.store.Meta.Get(ctx, m.id)
	if err != nil {
		return fmt.Errorf("load metadata of message %s: %w", m.id, err)
	}
	meta, err := decodeOnlyMeta(m.id, b)
	if err != nil {
		return err
	}
	m.store.metrics.metaLoad.ObserveSince(start)
	m.keepMeta(meta)
	return nil
}
