package dns

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// MXResult is where mail for a domain goes (flows SC-1).
type MXResult struct {
	// Domain is the domain in canonical form; for a literal the address.
	Domain string
	// Hosts are sorted by preference, then by name. Without MX records it is the
	// domain itself at preference 1; with a null MX it is empty.
	Hosts []MX
	// IsMX says that Hosts come from MX records.
	IsMX bool
	// NullMX says that the domain takes no mail (RFC 7505).
	NullMX bool
	// Literal says that the domain was an address literal; Addr is the address.
	Literal bool
	Addr    netip.Addr
	// Secure says that the answer, or the absence of MX records, was validated.
	Secure bool
	// TTL is how long the result is valid from now. It is 0 for literals, which do
	// not come from the DNS.
	TTL time.Duration
}

var errBadLiteral = errors.New("invalid address literal")

// LookupMX finds the hosts that take mail for domain, which is a name with
// A-labels or U-labels, or an address literal such as "[10.0.0.1]" or
// "[IPv6:::1]" (RFC 5321 section 4.1.3). The lookup is absolute. A domain that
// does not exist is an error (flows SC-1).
func LookupMX(ctx context.Context, r Resolver, domain string) (MXResult, error) {
	if strings.HasPrefix(domain, "[") {
		return literalMX(domain)
	}
	name, err := Canonical(domain)
	if err != nil {
		var e *Error
		if errors.As(err, &e) {
			return MXResult{}, &Error{Name: e.Name, Type: TypeMX, Kind: BadName, Err: e.Err}
		}
		return MXResult{}, err
	}
	res := MXResult{Domain: name}
	ans, err := r.Lookup(ctx, absolute(name), TypeMX)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) || e.Kind != NoData {
			return MXResult{}, err
		}
		// RFC 5321 section 5.1: no MX records, so the domain itself is the host.
		res.Hosts = []MX{{Pref: 1, Host: name}}
		res.TTL, res.Secure = e.TTL, e.Secure
		return res, nil
	}
	res.IsMX, res.Secure, res.TTL = true, ans.Secure, ans.TTL
	res.Hosts = sortMX(ans.Records)
	// RFC 7505 section 3: a null MX stands alone. Beside other records "." means
	// nothing, and sortMX has left it out.
	res.NullMX = len(res.Hosts) == 0
	return res, nil
}

// sortMX orders exchangers by preference and name. A host named twice is kept
// at its best preference; the root is left out.
func sortMX(recs []Record) []MX {
	hosts := make([]MX, 0, len(recs))
	for _, r := range recs {
		if r.MX.Host != "." {
			hosts = append(hosts, r.MX)
		}
	}
	slices.SortFunc(hosts, func(a, b MX) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Pref, b.Pref))
	})
	hosts = slices.CompactFunc(hosts, func(a, b MX) bool { return a.Host == b.Host })
	slices.SortFunc(hosts, func(a, b MX) int {
		return cmp.Or(cmp.Compare(a.Pref, b.Pref), cmp.Compare(a.Host, b.Host))
	})
	return hosts
}

func literalMX(s string) (MXResult, error) {
	ip, err := ParseLiteral(s)
	if err != nil {
		return MXResult{}, err
	}
	name := ip.String()
	return MXResult{
		Domain: name, Hosts: []MX{{Pref: 1, Host: name}},
		Literal: true, Addr: ip,
	}, nil
}

// ParseLiteral reads an address literal in brackets: "[10.0.0.1]",
// "[IPv6:::1]" (RFC 5321 section 4.1.3), and "[::1]", which is also in use. The
// error is an *Error of kind BadName.
func ParseLiteral(s string) (netip.Addr, error) {
	in, ok := strings.CutPrefix(s, "[")
	in, ok2 := strings.CutSuffix(in, "]")
	const tag = "ipv6:"
	want6 := len(in) > len(tag) && strings.EqualFold(in[:len(tag)], tag)
	if want6 {
		in = in[len(tag):]
	}
	ip, err := netip.ParseAddr(in)
	if !ok || !ok2 || err != nil || ip.Zone() != "" || want6 && !ip.Is6() {
		if len(s) > 300 {
			s = s[:300]
		}
		return netip.Addr{}, &Error{Name: s, Type: TypeMX, Kind: BadName, Err: errBadLiteral}
	}
	return ip.Unmap(), nil
}

// absolute returns the name with a trailing dot, so that no search list applies.
func absolute(name string) string {
	if strings.HasSuffix(name, ".") {
		return name
	}
	return name + "."
}

// LookupTXT returns the text records of name, one string per record.
func LookupTXT(ctx context.Context, r Resolver, name string) ([]string, error) {
	ans, err := r.Lookup(ctx, name, TypeTXT)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(ans.Records))
	for i, rec := range ans.Records {
		out[i] = rec.Text()
	}
	return out, nil
}

// LookupPTR returns the host names of ip. It may return as many as the answer
// had; a caller that looks each of them up must bound that itself.
func LookupPTR(ctx context.Context, r Resolver, ip netip.Addr) ([]string, error) {
	name := ReverseName(ip)
	if name == "" {
		return nil, &Error{Name: "invalid IP", Type: TypePTR, Kind: BadName}
	}
	ans, err := r.Lookup(ctx, absolute(name), TypePTR)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(ans.Records))
	for i, rec := range ans.Records {
		out[i] = rec.Host
	}
	return out, nil
}
