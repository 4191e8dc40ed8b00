package settings

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"
)

// MarshalJSON prints the table with its keys in order (RFC 8259). Numbers that JSON cannot say become null.
func (m Map) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, kv := range m {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := writeJSON(&b, kv.Key); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		v := kv.Value
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			v = nil
		}
		if err := writeJSON(&b, v); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func writeJSON(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // Encode ends with a line feed
	return nil
}

// TOML prints the table as a TOML 1.0 document: plain values first, then tables, each in order. What TOML cannot say
// (nil) is left out.
func (m Map) TOML() []byte {
	var b []byte
	return m.appendTOML(b, "")
}

func (m Map) appendTOML(b []byte, path string) []byte {
	for _, kv := range m {
		if kv.Value == nil || isTable(kv.Value) {
			continue
		}
		b = appendKey(b, kv.Key)
		b = append(b, " = "...)
		b = appendTOMLValue(b, kv.Value)
		b = append(b, '\n')
	}
	for _, kv := range m {
		at := string(appendKey(nil, kv.Key))
		if path != "" {
			at = path + "." + at
		}
		switch v := kv.Value.(type) {
		case Map:
			b = appendHeader(b, "["+at+"]")
			b = v.appendTOML(b, at)
		case []any:
			if !isTable(v) {
				continue
			}
			for _, e := range v {
				b = appendHeader(b, "[["+at+"]]")
				b = e.(Map).appendTOML(b, at)
			}
		}
	}
	return b
}

func appendHeader(b []byte, header string) []byte {
	if len(b) > 0 {
		b = append(b, '\n')
	}
	b = append(b, header...)
	return append(b, '\n')
}

// isTable says whether v is printed under a header: a table, or a list of tables only.
func isTable(v any) bool {
	switch v := v.(type) {
	case Map:
		return true
	case []any:
		for _, e := range v {
			if _, ok := e.(Map); !ok {
				return false
			}
		}
		return len(v) > 0
	}
	return false
}

func appendKey(b []byte, key string) []byte {
	if key != "" && len(key) <= maxSuggestLen && plainKey(key) {
		return append(b, key...)
	}
	return appendTOMLString(b, key)
}

func appendTOMLValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendTOMLString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case float64:
		return appendTOMLFloat(b, v)
	case time.Time:
		return v.AppendFormat(b, time.RFC3339Nano)
	case []any:
		b = append(b, '[')
		first := true
		for _, e := range v {
			if e == nil {
				continue
			}
			if !first {
				b = append(b, ", "...)
			}
			first = false
			b = appendTOMLValue(b, e)
		}
		return append(b, ']')
	case Map:
		b = append(b, '{')
		first := true
		for _, kv := range v {
			if kv.Value == nil {
				continue
			}
			if !first {
				b = append(b, ',')
			}
			first = false
			b = append(b, ' ')
			b = appendKey(b, kv.Key)
			b = append(b, " = "...)
			b = appendTOMLValue(b, kv.Value)
		}
		return append(b, " }"...)
	}
	return appendTOMLString(b, describeValue(v))
}

func appendTOMLFloat(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return append(b, s...)
}

const hexDigits = "0123456789ABCDEF"

// appendTOMLString writes a basic string. Bytes that are no UTF-8 become U+FFFD, as TOML has no other way.
func appendTOMLString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, '\\', 'n')
		case r == '\t':
			b = append(b, '\\', 't')
		case r == '\r':
			b = append(b, '\\', 'r')
		case r < 0x20 || r == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
