package mail

import (
	"bytes"
	"iter"
	"strings"
)

// Bounds of what is treated as header.
const (
	MaxHeader = 1 << 20
	MaxFields = 10000
)

// Header is the parsed header of a message. It refers to the bytes it was parsed from, which must not change while it
// is in use. The zero value is an empty header.
type Header struct {
	msg    []byte
	fields []span
	// end is the offset after the last field; body is the offset of the body, after the empty line if there is one.
	end, body int
}

type span struct{ start, colon, end int }

// Parse finds the header fields of msg. It accepts any bytes.
func Parse(msg []byte) *Header {
	h := &Header{msg: msg}
	limit := min(len(msg), MaxHeader)
	pos := 0
	for pos < limit && len(h.fields) < MaxFields {
		next := lineEnd(msg, pos)
		if n := emptyLine(msg[pos:next]); n {
			h.end, h.body = pos, next
			return h
		}
		colon := fieldColon(msg[pos:next])
		if colon < 0 {
			break
		}
		f := span{start: pos, colon: pos + colon}
		for next < len(msg) && (msg[next] == ' ' || msg[next] == '\t') {
			next = lineEnd(msg, next)
		}
		f.end = next
		h.fields = append(h.fields, f)
		pos = next
	}
	h.end, h.body = pos, pos
	return h
}

// lineEnd returns the offset after the line that begins at pos.
func lineEnd(msg []byte, pos int) int {
	i := bytes.IndexByte(msg[pos:], '\n')
	if i < 0 {
		return len(msg)
	}
	return pos + i + 1
}

func emptyLine(line []byte) bool {
	return len(line) == 1 && line[0] == '\n' || len(line) == 2 && line[0] == '\r' && line[1] == '\n'
}

// fieldColon returns the offset of the colon of a field line (RFC 5322 section 2.2), -1 when line is no field. Space
// before the colon is tolerated as obsolete syntax (section 4.5.8).
func fieldColon(line []byte) int {
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 {
		return -1
	}
	name := bytes.TrimRight(line[:colon], " \t")
	if len(name) == 0 {
		return -1
	}
	for _, c := range name {
		if c <= ' ' || c >= 0x7f {
			return -1
		}
	}
	return colon
}

// Len returns the number of fields.
func (h *Header) Len() int { return len(h.fields) }

// Body returns the body of the message.
func (h *Header) Body() []byte { return h.msg[h.body:] }

// Field is one header field, a view of the message.
type Field struct {
	h *Header
	i int
}

// All yields the fields in order.
func (h *Header) All() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for i := range h.fields {
			if !yield(Field{h, i}) {
				return
			}
		}
	}
}

// Named yields the fields with a name, compared without case.
func (h *Header) Named(name string) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for f := range h.All() {
			if f.Is(name) && !yield(f) {
				return
			}
		}
	}
}

// First returns the first field with a name, and whether there is one.
func (h *Header) First(name string) (Field, bool) {
	for f := range h.Named(name) {
		return f, true
	}
	return Field{}, false
}

// Count returns how many fields have a name.
func (h *Header) Count(name string) int {
	n := 0
	for range h.Named(name) {
		n++
	}
	return n
}

// Name returns the field name as it stands in the message.
func (f Field) Name() string { return string(f.name()) }

func (f Field) name() []byte {
	s := f.h.fields[f.i]
	return bytes.TrimRight(f.h.msg[s.start:s.colon], " \t")
}

// Is reports whether the field has the name, without regard to case.
func (f Field) Is(name string) bool {
	n := f.name()
	return len(n) == len(name) && strings.EqualFold(string(n), name)
}

// Bytes returns the whole field with its line end, as it stands in the message.
func (f Field) Bytes() []byte {
	s := f.h.fields[f.i]
	return f.h.msg[s.start:s.end]
}

// RawValue returns what follows the colon, folding included, without the final line end and the first space.
func (f Field) RawValue() string {
	s := f.h.fields[f.i]
	v := bytes.TrimRight(f.h.msg[s.colon+1:s.end], "\r\n")
	if len(v) > 0 && (v[0] == ' ' || v[0] == '\t') {
		v = v[1:]
	}
	return string(v)
}

// Value returns the value unfolded (RFC 5322 section 2.2.3) and with encoded words decoded (RFC 2047). Where decoding
// fails the raw text is returned.
func (f Field) Value() string { return decodeWords(unfold(f.RawValue())) }

// unfold removes the line breaks of folding and the space around the whole.
func unfold(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		s = unfolder.Replace(s)
	}
	return strings.TrimSpace(s)
}

var unfolder = strings.NewReplacer("\r\n", "", "\n", "")
