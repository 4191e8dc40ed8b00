package mta

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// Address is a mailbox of the envelope. The zero value is the null reverse-path "<>" (RFC 5321 section 4.5.5).
type Address struct {
	// Local is the local part with quotes and backslash quoting removed.
	Local string
	// Domain is the domain as given: a host name, a U-label name, or an address literal in brackets. It is empty for
	// the null sender and for the bare "postmaster" (RFC 5321 section 4.5.1).
	Domain string
}

// Limits of RFC 5321 section 4.5.3.1.
const (
	maxLocalPart = 64
	maxDomain    = 255
)

// ErrAddress is wrapped by every error of [ParseAddress].
var ErrAddress = errors.New("bad address")

// ParseAddress reads an addr-spec as it stands in an envelope (RFC 5321 section 4.1.2, RFC 6531 section 3.3), without
// angle brackets. The empty string is the null address.
func ParseAddress(s string) (Address, error) {
	if s == "" {
		return Address{}, nil
	}
	local, rest, err := scanLocal(s)
	if err != nil {
		return Address{}, fmt.Errorf("%w %q: %w", ErrAddress, clip(s), err)
	}
	if rest == "" && strings.EqualFold(local, "postmaster") {
		return Address{Local: local}, nil
	}
	if rest == "" || rest[0] != '@' {
		return Address{}, fmt.Errorf("%w %q: no @ after the local part", ErrAddress, clip(s))
	}
	domain := rest[1:]
	if err := checkDomain(domain); err != nil {
		return Address{}, fmt.Errorf("%w %q: %w", ErrAddress, clip(s), err)
	}
	return Address{Local: local, Domain: domain}, nil
}

// clip bounds foreign text in error messages.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

// scanLocal reads a dot-string or a quoted-string and returns its value and what follows.
func scanLocal(s string) (local, rest string, err error) {
	if s[0] == '"' {
		return scanQuoted(s)
	}
	i := 0
	for i < len(s) && isAtext(s[i]) {
		i++
	}
	local = s[:i]
	switch {
	case local == "":
		return "", "", errors.New("empty local part")
	case local[0] == '.' || local[len(local)-1] == '.' || strings.Contains(local, ".."):
		return "", "", errors.New("misplaced dot in the local part")
	case len(local) > maxLocalPart:
		return "", "", errors.New("local part over 64 octets")
	case !utf8.ValidString(local):
		return "", "", errors.New("local part is not UTF-8")
	}
	return local, s[i:], nil
}

// scanQuoted reads a quoted-string (RFC 5321 section 4.1.2).
func scanQuoted(s string) (local, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			local = b.String()
			if len(local) > maxLocalPart {
				return "", "", errors.New("local part over 64 octets")
			}
			if !utf8.ValidString(local) {
				return "", "", errors.New("local part is not UTF-8")
			}
			return local, s[i+1:], nil
		case c == '\\':
			i++
			if i == len(s) || s[i] < ' ' || s[i] >= 0x7f {
				return "", "", errors.New("bad quoted pair")
			}
			b.WriteByte(s[i])
		case c < ' ' || c == 0x7f:
			return "", "", errors.New("control character in the local part")
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("missing closing quote")
}

// isAtext reports whether c may stand in a dot-string, dots and UTF-8 (RFC 6531) included.
func isAtext(c byte) bool { return c >= 0x80 || atextTable[c] }

// atextTable holds atext of RFC 5322 section 3.2.3 and the dot.
var atextTable = func() (t [128]bool) {
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/=?^_`{|}~." {
		t[c] = true
	}
	return t
}()

// checkDomain checks a Domain or an address-literal. Underscores are tolerated, since such hosts exist. A port suffix
// is not part of an address.
func checkDomain(d string) error {
	switch {
	case d == "":
		return errors.New("empty domain")
	case len(d) > maxDomain:
		return errors.New("domain over 255 octets")
	case d[0] == '[':
		return checkLiteral(d)
	case !utf8.ValidString(d):
		return errors.New("domain is not UTF-8")
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(d, "."), ".") {
		if err := checkLabel(label); err != nil {
			return err
		}
	}
	return nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("empty label in the domain")
	case len(label) > 63 && isASCII(label):
		return errors.New("domain label over 63 octets")
	case label[0] == '-' || label[len(label)-1] == '-':
		return errors.New("domain label begins or ends with a hyphen")
	}
	for _, r := range label {
		switch {
		case r < 0x80:
			if r != '-' && r != '_' && !isAlnum(byte(r)) {
				return fmt.Errorf("character %q in the domain", r)
			}
		case isUnsafeDomainRune(r):
			// Such a rune could turn into a dot or vanish after the policy saw the name.
			return fmt.Errorf("character %U in the domain", r)
		}
	}
	return nil
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// isUnsafeDomainRune names runes that IDNA maps to a dot (UTS 46), zero-width and bidirectional controls, and spaces.
func isUnsafeDomainRune(r rune) bool {
	switch {
	case r == 0x3002, r == 0xFF0E, r == 0xFF61: // ideographic and full-width dots
		return true
	case r >= 0x80 && r <= 0xA0, r == 0xAD, r == 0x3000, r == 0xFEFF:
		return true
	case r >= 0x2000 && r <= 0x200F, r >= 0x2028 && r <= 0x202F, r >= 0x205F && r <= 0x206F:
		return true
	}
	return false
}

// checkLiteral checks an address-literal (RFC 5321 section 4.1.3).
func checkLiteral(d string) error {
	if _, ok := literalAddr(d); !ok {
		return errors.New("malformed address literal")
	}
	return nil
}

func literalAddr(d string) (netip.Addr, bool) {
	if len(d) < 3 || d[0] != '[' || d[len(d)-1] != ']' {
		return netip.Addr{}, false
	}
	s := d[1 : len(d)-1]
	v6 := false
	if len(s) > 5 && strings.EqualFold(s[:5], "IPv6:") {
		v6, s = true, s[5:]
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" || a.Is4() == v6 {
		return netip.Addr{}, false
	}
	return a, true
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// IsNull reports whether a is the null reverse-path.
func (a Address) IsNull() bool { return a.Local == "" && a.Domain == "" }

// Literal returns the address of a domain literal and whether the domain is one.
func (a Address) Literal() (netip.Addr, bool) { return literalAddr(a.Domain) }

// IsASCII reports whether a can be sent without SMTPUTF8 (RFC 6531).
func (a Address) IsASCII() bool { return isASCII(a.Local) && isASCII(a.Domain) }

// String returns the addr-spec, the local part quoted where needed; "" for the null address.
func (a Address) String() string {
	if a.IsNull() {
		return ""
	}
	local := a.Local
	if needsQuotes(local) {
		local = quoteLocal(local)
	}
	if a.Domain == "" {
		return local
	}
	return local + "@" + a.Domain
}

// MarshalText returns the form of [Address.String].
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads the form of [ParseAddress].
func (a *Address) UnmarshalText(text []byte) error {
	p, err := ParseAddress(string(text))
	if err != nil {
		return err
	}
	*a = p
	return nil
}

func needsQuotes(local string) bool {
	if local == "" || local[0] == '.' || local[len(local)-1] == '.' || strings.Contains(local, "..") {
		return true
	}
	for i := 0; i < len(local); i++ {
		if !isAtext(local[i]) {
			return true
		}
	}
	return false
}

func quoteLocal(local string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(local); i++ {
		if c := local[i]; c == '"' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(local[i])
	}
	b.WriteByte('"')
	return b.String()
}
