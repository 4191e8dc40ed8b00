package mta

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"example.com/svc/spool"
)

// The meta record of a message. Numbers are unsigned varints, strings are a length and that many bytes; nothing is
// found by searching for a separator, so no content can change the structure. The spool adds length and checksum.
//
//	1 byte    version, 1
//	16 bytes  message ID
//	string    sender local part, string sender domain
//	varint    number of recipients, then local part and domain of each
//	string    scheduling as JSON, empty for none
//	varint    number of metadata entries, then for each:
//	          string key, 1 byte type, value:
//	          's' string, 't' true, 'f' false, 'i' zigzag varint, 'd' 8 bytes IEEE 754 big-endian, 'j' string of JSON
const metaVersion = 1

// Bounds on what a record may claim, so that a damaged one cannot ask for much memory.
const (
	maxRecipients  = 1 << 20
	maxMetaEntries = 1 << 16
)

var errMetaShort = errors.New("metadata record ends early")

// appendMeta appends the record of m, whose metadata is in memory.
func appendMeta(b []byte, m *Message) []byte {
	b = append(b, metaVersion)
	b = append(b, m.id[:]...)
	b = appendAddress(b, m.env.Sender)
	b = binary.AppendUvarint(b, uint64(len(m.env.Recipients)))
	for _, r := range m.env.Recipients {
		b = appendAddress(b, r)
	}
	var sched []byte
	if m.sched != nil {
		sched, _ = json.Marshal(m.sched) // fields of fixed types: cannot fail
	}
	b = appendString(b, sched)
	b = binary.AppendUvarint(b, uint64(len(m.meta.kv)))
	for i := range m.meta.kv {
		b = appendString(b, m.meta.kv[i].key)
		b = appendValue(b, m.meta.kv[i].val)
	}
	return b
}

func appendAddress(b []byte, a Address) []byte {
	return appendString(appendString(b, a.Local), a.Domain)
}

func appendString[S ~string | ~[]byte](b []byte, s S) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendString(append(b, 's'), v)
	case bool:
		if v {
			return append(b, 't')
		}
		return append(b, 'f')
	case int64:
		return binary.AppendVarint(append(b, 'i'), v)
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 'd'), math.Float64bits(v))
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte("null") // CheckMetaValue lets only JSON-able values in, but for NaN inside tables
	}
	return appendString(append(b, 'j'), text)
}

// metaRecord is a decoded record.
type metaRecord struct {
	env   Envelope
	sched *Scheduling
	meta  Meta
}

// decodeMeta reads the record of id. Every error is a *spool.CorruptError.
func decodeMeta(id spool.ID, b []byte) (*metaRecord, error) {
	r, err := parseMeta(id, b)
	if err != nil {
		return nil, &spool.CorruptError{ID: id, Err: err}
	}
	return r, nil
}

func parseMeta(id spool.ID, b []byte) (*metaRecord, error) {
	d := decoder{b: b}
	if v := d.byte(); d.err == nil && v != metaVersion {
		return nil, fmt.Errorf("metadata record has unknown version %d", v)
	}
	if own := d.take(16); d.err == nil && spool.ID(own) != id {
		return nil, fmt.Errorf("metadata record belongs to message %s", spool.ID(own))
	}
	r := &metaRecord{}
	r.env.Sender = d.address()
	n := d.count(maxRecipients)
	r.env.Recipients = make([]Address, 0, min(n, 16))
	for range n {
		r.env.Recipients = append(r.env.Recipients, d.address())
		if d.err != nil {
			return nil, d.err
		}
	}
	if text := d.take(d.count(len(b))); len(text) > 0 {
		r.sched = new(Scheduling)
		if err := json.Unmarshal(text, r.sched); err != nil {
			return nil, fmt.Errorf("scheduling of metadata record: %w", err)
		}
	}
	n = d.count(maxMetaEntries)
	r.meta.kv = make([]metaPair, 0, min(n, 32))
	for range n {
		p := metaPair{key: d.string()}
		p.val = d.value()
		if d.err != nil {
			return nil, d.err
		}
		r.meta.kv = append(r.meta.kv, p)
	}
	if d.err == nil && len(d.b) > 0 {
		return nil, errors.New("metadata record has bytes after its end")
	}
	return r, d.err
}

// decoder reads the parts of a record; after the first error every read gives a zero value.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.b = nil
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail(errMetaShort)
		return make([]byte, min(max(n, 0), 16))
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.fail(errMetaShort)
		return 0
	}
	return d.take(1)[0]
}

func (d *decoder) count(limit int) int {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(errMetaShort)
		return 0
	}
	d.b = d.b[n:]
	if v > uint64(limit) {
		d.fail(fmt.Errorf("metadata record claims %d entries", v))
		return 0
	}
	return int(v)
}

func (d *decoder) string() string { return string(d.take(d.count(len(d.b)))) }

func (d *decoder) address() Address {
	local := d.string()
	return Address{Local: local, Domain: d.string()}
}

func (d *decoder) value() any {
	switch t := d.byte(); t {
	case 's':
		return d.string()
	case 't':
		return true
	case 'f':
		return false
	case 'i':
		v, n := binary.Varint(d.b)
		if n <= 0 {
			d.fail(errMetaShort)
			return nil
		}
		d.b = d.b[n:]
		return v
	case 'd':
		p := d.take(8)
		if d.err != nil {
			return nil
		}
		return math.Float64frombits(binary.BigEndian.Uint64(p))
	case 'j':
		var v any
		if err := json.Unmarshal(d.take(d.count(len(d.b))), &v); err != nil {
			d.fail(fmt.Errorf("metadata value: %w", err))
		}
		return v
	default:
		d.fail(fmt.Errorf("metadata value of unknown type %q", t))
		return nil
	}
}
