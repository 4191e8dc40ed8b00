package dns

import (
	"context"
	"net/netip"
)

// LookupRBL asks the block list at base about ip (RFC 5782 section 2). listed
// is the lowest address it answers with, the zero Addr when ip is not on the
// list; reason is its text, "" if it gives none. A failure to find out is an
// error.
func LookupRBL(ctx context.Context, r Resolver, ip netip.Addr, base string) (listed netip.Addr, reason string, err error) {
	rev := ReverseIP(ip)
	if rev == "" {
		return netip.Addr{}, "", &Error{Name: "invalid IP", Type: TypeA, Kind: BadName}
	}
	name := absolute(rev + "." + base)
	ans, err := r.Lookup(ctx, name, TypeA)
	if err != nil {
		if IsNotFound(err) {
			err = nil
		}
		return netip.Addr{}, "", err
	}
	for _, rec := range ans.Records {
		if !listed.IsValid() || rec.Addr.Less(listed) {
			listed = rec.Addr
		}
	}
	txt, err := LookupTXT(ctx, r, name)
	if err != nil {
		if IsNotFound(err) {
			err = nil // a list need not give reasons (RFC 5782 section 2.1)
		}
		return listed, "", err
	}
	return listed, txt[0], nil
}
