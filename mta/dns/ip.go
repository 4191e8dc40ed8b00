package dns

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Strategy says which addresses of a host are looked up (settings
// ip_lookup_strategy and ip_strategy). The zero value is Ipv4AndIpv6.
type Strategy uint8

// The strategies.
const (
	Ipv4AndIpv6  Strategy = iota // both, IPv4 first
	Ipv4Only                     // IPv4
	Ipv6Only                     // IPv6
	Ipv6ThenIpv4                 // IPv6; IPv4 if there is none
	Ipv4ThenIpv6                 // IPv4; IPv6 if there is none
	Ipv6AndIpv4                  // both, IPv6 first
)

var strategyText = [...]string{"Ipv4AndIpv6", "Ipv4Only", "Ipv6Only", "Ipv6ThenIpv4", "Ipv4ThenIpv6", "Ipv6AndIpv4"}

// String returns the name used in settings.
func (s Strategy) String() string {
	if int(s) < len(strategyText) {
		return strategyText[s]
	}
	return fmt.Sprintf("Strategy(%d)", uint8(s))
}

// MarshalText returns the name used in settings.
func (s Strategy) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name used in settings, in any case.
func (s *Strategy) UnmarshalText(b []byte) error {
	for i, t := range strategyText {
		if strings.EqualFold(t, string(b)) {
			*s = Strategy(i)
			return nil
		}
	}
	return fmt.Errorf("unknown IP strategy %q, want one of %s", b, strings.Join(strategyText[:], ", "))
}

// HostResult is the addresses of a host.
type HostResult struct {
	// Name is the canonical name at the end of the aliases.
	Name string
	// Addrs are in the order of the strategy, without doubles.
	Addrs []netip.Addr
	// TTL is how long the result is valid from now; for an address given as text it is 0.
	TTL time.Duration
	// Secure says that every answer used was validated by DNSSEC.
	Secure bool
}

// LookupIP returns the addresses of host in the order of the strategy. See LookupHost.
func LookupIP(ctx context.Context, r Resolver, host string, s Strategy) ([]netip.Addr, time.Duration, error) {
	res, err := LookupHost(ctx, r, host, s)
	return res.Addrs, res.TTL, err
}

// LookupHost looks up the addresses of host. An address in text form stands for
// itself. When one family fails and the other has addresses, these are returned;
// when there are none, a failure that may pass is reported before "not found".
func LookupHost(ctx context.Context, r Resolver, host string, s Strategy) (HostResult, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return HostResult{Name: ip.String(), Addrs: []netip.Addr{ip.Unmap()}}, nil
	}
	first, second := TypeA, TypeAAAA
	switch s {
	case Ipv4Only:
		return lookupFamily(ctx, r, host, TypeA)
	case Ipv6Only:
		return lookupFamily(ctx, r, host, TypeAAAA)
	case Ipv6ThenIpv4, Ipv6AndIpv4:
		first, second = second, first
	}
	if s == Ipv6ThenIpv4 || s == Ipv4ThenIpv6 {
		res, err := lookupFamily(ctx, r, host, first)
		if err == nil {
			return res, nil
		}
		res, err2 := lookupFamily(ctx, r, host, second)
		if err2 != nil {
			return HostResult{}, worse(err, err2)
		}
		return res, nil
	}
	return lookupBoth(ctx, r, host, first, second)
}

// lookupBoth asks for both families at the same time.
func lookupBoth(ctx context.Context, r Resolver, host string, first, second Type) (HostResult, error) {
	var b HostResult
	var errB error
	done := make(chan struct{})
	go func() {
		defer close(done)
		b, errB = lookupFamily(ctx, r, host, second)
	}()
	a, errA := lookupFamily(ctx, r, host, first)
	<-done
	switch {
	case errA != nil && errB != nil:
		return HostResult{}, worse(errA, errB)
	case errA != nil:
		return b, nil
	case errB != nil:
		return a, nil
	}
	a.Addrs = append(a.Addrs, b.Addrs...)
	a.TTL = min(a.TTL, b.TTL)
	a.Secure = a.Secure && b.Secure
	return a, nil
}

func lookupFamily(ctx context.Context, r Resolver, host string, t Type) (HostResult, error) {
	ans, err := r.Lookup(ctx, host, t)
	if err != nil {
		return HostResult{}, err
	}
	res := HostResult{Name: ans.Name, TTL: ans.TTL, Secure: ans.Secure, Addrs: make([]netip.Addr, 0, len(ans.Records))}
	seen := make(map[netip.Addr]struct{}, len(ans.Records))
	for _, rec := range ans.Records {
		if _, dup := seen[rec.Addr]; !dup {
			seen[rec.Addr] = struct{}{}
			res.Addrs = append(res.Addrs, rec.Addr)
		}
	}
	return res, nil
}

// worse picks the error to report for two families: "no such record" only if
// that is true for both.
func worse(a, b error) error {
	if weight(b) > weight(a) {
		return b
	}
	return a
}
