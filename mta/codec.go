package mta

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/svc/spool"
)

// The meta record of a message. Numbers are unsigned varints unless said otherwise, strings are a length and that many
// bytes; nothing is found by searching for a separator, so no content can change the structure. Whatever the encoder
// writes the decoder reads: both know the same bounds. The spool adds length and checksum.
//
//	1 byte    version, 1
//	16 bytes  message ID
//	number    length of the envelope in bytes, then
//	          string    sender local part, string sender domain
//	          number    recipients, then local part and domain of each
//	1 byte    scheduling: sum of 1 first attempt, 2 expires, 4 window; then what it names, in this order:
//	          time      seconds since 1970 as zigzag varint, then nanoseconds
//	          window    1 byte days, string zone, zigzag varint start, zigzag varint end
//	number    metadata entries, then for each:
//	          string key, value
//	value     1 byte type, then by type:
//	          's' string, 't' true, 'f' false, 'i' zigzag varint, 'd' 8 bytes IEEE 754 big-endian, 'n' null,
//	          'a' number of elements and their values, 'm' number of entries and key and value of each,
//	          'j' string of JSON, for what is of none of the types of a [Meta]
const metaVersion = 1

// Bits of the scheduling byte.
const (
	schedFirst = 1 << iota
	schedExpires
	schedWindow
)

// appendMeta appends the record of m, whose metadata is in memory.
func appendMeta(b []byte, m *Message) ([]byte, error) {
	b = append(b, metaVersion)
	b = append(b, m.id[:]...)
	b = appendEnvelope(b, &m.env)
	b = appendScheduling(b, m.sched)
	b = binary.AppendUvarint(b, uint64(len(m.meta.kv)))
	var err error
	for i := range m.meta.kv {
		b = appendString(b, m.meta.kv[i].key)
		if b, err = appendValue(b, m.meta.kv[i].val, 0); err != nil {
			return b, fmt.Errorf("metadata %q of message %s: %w", clip(m.meta.kv[i].key), m.id, err)
		}
	}
	return b, nil
}

func appendEnvelope(b []byte, e *Envelope) []byte {
	n := addressSize(e.Sender) + uvarintSize(len(e.Recipients))
	for i := range e.Recipients {
		n += addressSize(e.Recipients[i])
	}
	b = binary.AppendUvarint(b, uint64(n))
	b = appendAddress(b, e.Sender)
	b = binary.AppendUvarint(b, uint64(len(e.Recipients)))
	for i := range e.Recipients {
		b = appendAddress(b, e.Recipients[i])
	}
	return b
}

func addressSize(a Address) int {
	return uvarintSize(len(a.Local)) + len(a.Local) + uvarintSize(len(a.Domain)) + len(a.Domain)
}

func uvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

func appendAddress(b []byte, a Address) []byte {
	return appendString(appendString(b, a.Local), a.Domain)
}

func appendString[S ~string | ~[]byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendScheduling(b []byte, s *Scheduling) []byte {
	if s == nil {
		return append(b, 0)
	}
	at := len(b)
	b = append(b, 0)
	if !s.FirstAttempt.IsZero() {
		b[at] |= schedFirst
		b = appendTime(b, s.FirstAttempt)
	}
	if !s.Expires.IsZero() {
		b[at] |= schedExpires
		b = appendTime(b, s.Expires)
	}
	if w := s.Window; w != nil {
		b[at] |= schedWindow
		b = appendString(append(b, w.Days), w.Zone)
		b = binary.AppendVarint(b, int64(w.Start))
		b = binary.AppendVarint(b, int64(w.End))
	}
	return b
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

func appendValue(b []byte, v any, depth int) (_ []byte, err error) {
	if depth > maxMetaDepth {
		return b, errMetaDepth
	}
	switch v := v.(type) {
	case nil:
		return append(b, 'n'), nil
	case string:
		return appendString(append(b, 's'), v), nil
	case bool:
		if v {
			return append(b, 't'), nil
		}
		return append(b, 'f'), nil
	case int64:
		return binary.AppendVarint(append(b, 'i'), v), nil
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 'd'), math.Float64bits(v)), nil
	case []any:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(v)))
		for _, e := range v {
			if b, err = appendValue(b, e, depth+1); err != nil {
				return b, err
			}
		}
		return b, nil
	case map[string]any:
		b = binary.AppendUvarint(append(b, 'm'), uint64(len(v)))
		for k, e := range v {
			if b, err = appendValue(appendString(b, k), e, depth+1); err != nil {
				return b, err
			}
		}
		return b, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return b, err
	}
	return appendString(append(b, 'j'), text), nil
}

// metaRecord is a decoded record.
type metaRecord struct {
	env   Envelope
	sched *Scheduling
	meta  *Meta
}

// decodeMeta reads the record of id. Every error is a *spool.CorruptError.
func decodeMeta(id spool.ID, b []byte) (metaRecord, error) {
	r, err := parseMeta(id, b, true)
	if err != nil {
		return metaRecord{}, &spool.CorruptError{ID: id, Err: err}
	}
	return r, nil
}

// decodeOnlyMeta reads the metadata of the record of id and passes over the rest.
func decodeOnlyMeta(id spool.ID, b []byte) (*Meta, error) {
	r, err := parseMeta(id, b, false)
	if err != nil {
		return nil, &spool.CorruptError{ID: id, Err: err}
	}
	return r.meta, nil
}

// parseMeta makes one string for the envelope and one for the metadata, which the strings inside share: either can be
// dropped from memory without the other.
func parseMeta(id spool.ID, b []byte, all bool) (r metaRecord, err error) {
	if len(b) < 1+len(id) {
		return r, errMetaShort
	}
	if b[0] != metaVersion {
		return r, fmt.Errorf("metadata record has unknown version %d", b[0])
	}
	if own := spool.ID(b[1 : 1+len(id)]); own != id {
		return r, fmt.Errorf("metadata record belongs to message %s", own)
	}
	b = b[1+len(id):]
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return r, errMetaShort
	}
	env, rest := b[used:used+int(n)], b[used+int(n):]
	if all {
		d := decoder{s: string(env)}
		if r.env, err = d.envelope(), d.end(); err != nil {
			return r, err
		}
	}
	d := decoder{s: string(rest)}
	r.sched = d.scheduling()
	r.meta = d.meta()
	return r, d.end()
}

func (d *decoder) envelope() (e Envelope) {
	e.Sender = d.address()
	n := d.count(2) // an address has two lengths at least
	e.Recipients = make([]Address, 0, n)
	for range n {
		e.Recipients = append(e.Recipients, d.address())
		if d.err != nil {
			break
		}
	}
	return e
}

func (d *decoder) address() Address {
	local := d.string()
	return Address{Local: local, Domain: d.string()}
}

func (d *decoder) scheduling() *Scheduling {
	bits := d.byte()
	if bits == 0 {
		return nil
	}
	if bits&^(schedFirst|schedExpires|schedWindow) != 0 {
		d.fail(fmt.Errorf("metadata record has unknown scheduling %#x", bits))
		return nil
	}
	s := new(Scheduling)
	if bits&schedFirst != 0 {
		s.FirstAttempt = d.time()
	}
	if bits&schedExpires != 0 {
		s.Expires = d.time()
	}
	if bits&schedWindow != 0 {
		w := &Window{Days: d.byte()}
		// The zone outlives the metadata in memory, hence the copy.
		w.Zone = strings.Clone(d.string())
		w.Start, w.End = int(d.varint()), int(d.varint())
		s.Window = w
	}
	return s
}

func (d *decoder) time() time.Time {
	sec := d.varint()
	nsec := d.uvarint()
	if nsec >= uint64(time.Second) {
		d.fail(errors.New("metadata record has an impossible time"))
		return time.Time{}
	}
	return time.Unix(sec, int64(nsec)).UTC()
}

func (d *decoder) meta() *Meta {
	n := d.count(2) // a key has a length and a value has a type
	m := new(Meta)
	if n > 0 {
		m.kv = make([]metaPair, 0, n)
	}
	for range n {
		key := d.string()
		m.kv = append(m.kv, metaPair{key: key, val: d.value(0)})
		if d.err != nil {
			break
		}
	}
	return m
}
