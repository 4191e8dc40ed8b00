package mail

import (
	"errors"
	"fmt"
	"mime"
	"strings"
)

// ErrField is wrapped by the errors about names and values that cannot stand in a header.
var ErrField = errors.New("bad header field")

// CheckField returns an error if name: value cannot be written as one header field: a name outside RFC 5322 section
// 2.2, or a value whose line breaks would begin another field.
func CheckField(name, value string) error {
	if name == "" || len(name) > 255 {
		return fmt.Errorf("%w: name %q", ErrField, name)
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c <= ' ' || c >= 0x7f || c == ':' {
			return fmt.Errorf("%w: name %q", ErrField, name)
		}
	}
	rest := value
	for {
		i := strings.IndexAny(rest, "\r\n\x00")
		if i < 0 {
			return nil
		}
		switch {
		case strings.HasPrefix(rest[i:], "\r\n "), strings.HasPrefix(rest[i:], "\r\n\t"):
			rest = rest[i+3:]
		default:
			return fmt.Errorf("%w: value of %s has a line break that folds nothing, or a NUL", ErrField, name)
		}
	}
}

// AppendField appends the field with its CRLF to b. The value stands as it is; see [CheckField].
func AppendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	b = append(b, value...)
	return append(b, "\r\n"...)
}

// EncodeValue makes a value fit for a header: text beyond ASCII becomes encoded words (RFC 2047), and lines are folded
// at spaces to at most 75 columns where the text allows.
func EncodeValue(name, value string) string {
	value = strings.Join(strings.FieldsFunc(value, func(r rune) bool { return r == '\r' || r == '\n' }), " ")
	for i := 0; i < len(value); i++ {
		if value[i] >= 0x80 {
			value = mime.QEncoding.Encode("utf-8", value)
			break
		}
	}
	return fold(value, len(name)+2)
}

// Lines are folded at foldColumn and are never longer than maxLine where the text has spaces (RFC 5322 section 2.1.1).
const (
	foldColumn = 75
	maxLine    = 78
)

// fold breaks value at spaces; first is the column it begins at.
func fold(value string, first int) string {
	if first+len(value) <= foldColumn {
		return value
	}
	var b strings.Builder
	col := first
	for i, word := range strings.Split(value, " ") {
		switch {
		case i == 0 && col+len(word) <= maxLine:
		case col+1+len(word) > foldColumn && strings.TrimSpace(word) != "":
			b.WriteString("\r\n ")
			col = 1
		default:
			if i > 0 {
				b.WriteByte(' ')
				col++
			}
		}
		b.WriteString(word)
		col += len(word)
	}
	return b.String()
}

var wordDecoder = mime.WordDecoder{}

func decodeWords(s string) string {
	if !strings.Contains(s, "=?") {
		return s
	}
	d, err := wordDecoder.DecodeHeader(s)
	if err != nil {
		return s
	}
	return d
}

// Append returns a message with field, which ends in CRLF, added after the existing fields.
func (h *Header) Append(field []byte) []byte {
	out := make([]byte, 0, len(h.msg)+len(field)+2)
	out = append(out, h.msg[:h.end]...)
	if h.end > 0 && h.msg[h.end-1] != '\n' {
		out = append(out, "\r\n"...)
	}
	out = append(out, field...)
	if h.body == h.end && h.body < len(h.msg) {
		out = append(out, "\r\n"...) // the body had no empty line before it
	}
	return append(out, h.msg[h.end:]...)
}

// Remove returns a message without the fields that drop selects, and how many were removed. With none the message is
// returned as it is.
func (h *Header) Remove(drop func(Field) bool) ([]byte, int) {
	var out []byte
	n, kept := 0, 0
	for f := range h.All() {
		if !drop(f) {
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(h.msg))
		}
		s := h.fields[f.i]
		out = append(out, h.msg[kept:s.start]...)
		kept = s.end
		n++
	}
	if n == 0 {
		return h.msg, 0
	}
	return append(out, h.msg[kept:]...), n
}
