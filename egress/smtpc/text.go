package smtpc

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// safe escapes control characters and bytes that are no UTF-8 in the text of a peer, line breaks between lines apart
// (C3).
func safe(s string) string {
	i := unsafeAt(s)
	if i < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:i])
	for i < len(s) {
		c := s[i]
		if c == '\n' || c >= ' ' && c < 0x7f {
			b.WriteByte(c)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if c < utf8.RuneSelf || r == utf8.RuneError && n == 1 || r >= 0x80 && r < 0xa0 {
			for _, e := range []byte(s[i : i+n]) {
				b.WriteString(`\x`)
				if e < 0x10 {
					b.WriteByte('0')
				}
				b.WriteString(strconv.FormatUint(uint64(e), 16))
			}
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// unsafeAt returns where the first byte stands that may need an escape, -1 for plain text.
func unsafeAt(s string) int {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= 0x7f || c < ' ' && c != '\n' {
			return i
		}
	}
	return -1
}

// clip bounds text in errors.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
