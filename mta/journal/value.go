package journal

import (
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// maxDepth bounds the nesting of values, which come from policies and requests.
const maxDepth = 64

// appendString writes s as a JSON string (RFC 8259 section 7). Bytes that are no UTF-8 become U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := len(b)
	b = append(b, s...)
	if i := start + plainPrefix(b[start:]); i < len(b) {
		b = appendEscaped(b[:i], s[i-start:])
	}
	return append(b, '"')
}

// plainPrefix returns a number of leading bytes of p that stand for themselves in a JSON string, being printable ASCII
// other than the quote and the backslash; the byte after them may or may not. It looks at eight bytes at once: the
// high bit of a byte of bad is set when that byte, or one before it, needs a closer look.
func plainPrefix(p []byte) int {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	n := 0
	for ; len(p)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(p[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		bad := w | (w - ones*' ') | (quote - ones) | (slash - ones)
		if bad&high != 0 {
			return n
		}
	}
	return n + plainTail(p[n:])
}

func plainTail(p []byte) int {
	for i, c := range p {
		if c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return len(p)
}

const hexDigits = "0123456789abcdef"

// appendEscaped writes s, of which some byte needs care.
func appendEscaped(b []byte, s string) []byte {
	done := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[done:i]...)
			b = appendEscape(b, c)
			i++
			done = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[done:i]...)
			b = append(b, "\uFFFD"...)
			done = i + 1
		}
		i += size
	}
	return append(b, s[done:]...)
}

func appendEscape(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendStringOrNull writes null for the empty string.
func appendStringOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

func appendStrings(b []byte, list []string) []byte {
	b = append(b, '[')
	for i, s := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s)
	}
	return append(b, ']')
}

// appendTime writes an instant as RFC 3339 in UTC with 0, 3, 6 or 9 digits of the second, as many as it needs.
func appendTime(b []byte, t time.Time) []byte {
	t = t.UTC()
	layout := "2006-01-02T15:04:05.000000000Z"
	switch ns := t.Nanosecond(); {
	case ns == 0:
		layout = "2006-01-02T15:04:05Z"
	case ns%1e6 == 0:
		layout = "2006-01-02T15:04:05.000Z"
	case ns%1e3 == 0:
		layout = "2006-01-02T15:04:05.000000Z"
	}
	b = append(b, '"')
	b = t.AppendFormat(b, layout)
	return append(b, '"')
}

// appendValue writes a metadata value. What JSON cannot express is null.
func appendValue(b []byte, v any, depth int) []byte {
	if depth > maxDepth {
		return append(b, "null"...)
	}
	switch v := v.(type) {
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return appendString(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		return appendFloat(b, v)
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, e, depth+1)
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for i, key := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, key), ':')
			b = appendValue(b, v[key], depth+1)
		}
		return append(b, '}')
	}
	return append(b, "null"...)
}

func appendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, "null"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, 64)
}
