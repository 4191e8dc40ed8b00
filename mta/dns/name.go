package dns

import (
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Limits of a name in text form without trailing dot. 253 characters are 255
// octets on the wire (RFC 1035 section 2.3.4).
const (
	maxName  = 253
	maxLabel = 63
)

var (
	errEmptyName  = errors.New("empty name")
	errLongName   = errors.New("name longer than 255 octets")
	errLongLabel  = errors.New("label longer than 63 octets")
	errEmptyLabel = errors.New("empty label")
	errBadChar    = errors.New("invalid character")
)

// profile maps U-labels to A-labels (RFC 5891 section 5). Names with
// underscores are let through; Canonical checks the characters afterwards.
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(), idna.StrictDomainName(false))

// Canonical returns name in lower case, with A-labels (RFC 5890) and without
// trailing dot; the root is ".". The error is an *Error of kind BadName.
func Canonical(name string) (string, error) {
	n, _, err := canonical(name, TypeA)
	if err != nil {
		return "", err
	}
	return n, nil
}

// canonical is Canonical that also says whether name had a trailing dot. It
// does not allocate for names that are canonical already.
func canonical(name string, qtype Type) (n string, rooted bool, err error) {
	n, rooted, cause := normalize(name)
	if cause != nil {
		if len(name) > 300 {
			name = name[:300]
		}
		return "", false, &Error{Name: name, Type: qtype, Kind: BadName, Err: cause}
	}
	return n, rooted, nil
}

func normalize(name string) (string, bool, error) {
	if name == "." {
		return name, true, nil
	}
	n, rooted := strings.CutSuffix(name, ".")
	if n == "" {
		return "", false, errEmptyName
	}
	if len(n) > 4*maxName {
		return "", false, errLongName
	}
	upper, err := checkName(n)
	if err == errNotASCII {
		if !utf8.ValidString(n) {
			return "", false, errBadChar
		}
		if n, err = profile.ToASCII(n); err != nil {
			return "", false, err
		}
		n = strings.TrimSuffix(n, ".") // other full stops are mapped to this one
		upper, err = checkName(n)
	}
	if err != nil {
		return "", false, err
	}
	if upper {
		n = strings.ToLower(n)
	}
	return n, rooted, nil
}

var errNotASCII = errors.New("not ASCII")

// checkName checks lengths and characters of n, and says whether it has upper
// case letters. Visible ASCII is allowed, since owners of TXT and PTR records
// are no host names (RFC 2181 section 11), except for the backslash.
func checkName(n string) (upper bool, err error) {
	label := 0
	for i := 0; i < len(n); i++ {
		c := n[i]
		switch {
		case c == '.':
			if i == label {
				return false, errEmptyLabel
			}
			if i-label > maxLabel {
				return false, errLongLabel
			}
			label = i + 1
		case c >= 0x80:
			return false, errNotASCII
		case c <= ' ' || c == 0x7f || c == '\\':
			return false, errBadChar
		case 'A' <= c && c <= 'Z':
			upper = true
		}
	}
	switch {
	case len(n) == label:
		return false, errEmptyLabel
	case len(n)-label > maxLabel:
		return false, errLongLabel
	case len(n) > maxName:
		return false, errLongName
	}
	return upper, nil
}

// hostName returns the host name in an answer in canonical form. ok is false
// for names that no host has (D4).
func hostName(s string) (host string, ok bool) {
	if s == "." {
		return s, true
	}
	n := strings.TrimSuffix(s, ".")
	upper, err := checkName(n)
	if err != nil {
		return "", false
	}
	if upper {
		n = strings.ToLower(n)
	}
	for i := 0; i < len(n); i++ {
		c := n[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return "", false
		}
	}
	return n, true
}

// ReverseIP returns the labels of ip in reverse: "1.0.0.127", or 32 nibbles for
// IPv6 (RFC 3596 section 2.5). It returns "" for the zero Addr. IPv4 in IPv6
// counts as IPv4.
func ReverseIP(ip netip.Addr) string {
	ip = ip.Unmap()
	if !ip.IsValid() {
		return ""
	}
	b := ip.AsSlice()
	out := make([]byte, 0, 64)
	const hexDigits = "0123456789abcdef"
	for i := len(b) - 1; i >= 0; i-- {
		if len(out) > 0 {
			out = append(out, '.')
		}
		if ip.Is4() {
			out = appendDecimal(out, b[i])
		} else {
			out = append(out, hexDigits[b[i]&15], '.', hexDigits[b[i]>>4])
		}
	}
	return string(out)
}

func appendDecimal(out []byte, v byte) []byte {
	if v >= 100 {
		out = append(out, '0'+v/100)
	}
	if v >= 10 {
		out = append(out, '0'+v/10%10)
	}
	return append(out, '0'+v%10)
}

// ReverseName returns the name of the PTR records of ip, without trailing dot:
// "1.0.0.127.in-addr.arpa" (RFC 1035 section 3.5). It returns "" for the zero Addr.
func ReverseName(ip netip.Addr) string {
	r := ReverseIP(ip)
	switch {
	case r == "":
		return ""
	case ip.Unmap().Is4():
		return r + ".in-addr.arpa"
	}
	return r + ".ip6.arpa"
}
