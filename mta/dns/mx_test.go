package dns_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta/dns"
	"example.com/svc/mta/dns/dnstest"
)

const mxZone = `
$ORIGIN test.
@       300 IN SOA ns root 1 7200 3600 86400 60
two     300 IN MX 20 b.test.
two     300 IN MX 10 Z.test.
two     300 IN MX 10 a.test.
twice   300 IN MX 20 a.test.
twice   300 IN MX 10 a.test.
none    300 IN A 192.0.2.1
null    300 IN MX 0 .
null10  300 IN MX 10 .
mixed   300 IN MX 0 .
mixed   300 IN MX 10 a.test.
xn--bcher-kva 300 IN MX 10 a.test.
alias   100 IN CNAME two
a       300 IN A 192.0.2.1
v4      300 IN A 192.0.2.1
v6      200 IN AAAA 2001:db8::1
both    300 IN A 192.0.2.1
both    300 IN A 192.0.2.2
both    200 IN AAAA 2001:db8::1
`

func zones(t testing.TB, secure bool, servfail ...string) *dns.Zones {
	t.Helper()
	z, err := dns.NewZones([]dns.Zone{{Text: mxZone, Secure: secure}}, servfail)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestLookupMX(t *testing.T) {
	z := zones(t, true, "broken.test")
	for _, c := range []struct {
		rule, domain string
		hosts        string
		isMX, null   bool
		literal      string
		ttl          time.Duration
		kind         dns.Kind
	}{
		{rule: "SC-1 by preference, then by name, lower case", domain: "Two.test.", hosts: "[{10 a.test} {10 z.test} {20 b.test}]", isMX: true, ttl: 300},
		{rule: "SC-1 a host twice", domain: "twice.test", hosts: "[{10 a.test}]", isMX: true, ttl: 300},
		{rule: "SC-1 no MX: the domain at preference 1", domain: "none.test", hosts: "[{1 none.test}]", ttl: 60},
		{rule: "SC-1 null MX", domain: "null.test", hosts: "[]", isMX: true, null: true, ttl: 300},
		{rule: "SC-1 null MX at another preference", domain: "null10.test", hosts: "[]", isMX: true, null: true, ttl: 300},
		{rule: "RFC 7505 section 3: not alone, so no null MX", domain: "mixed.test", hosts: "[{10 a.test}]", isMX: true, ttl: 300},
		{rule: "SC-1 NXDOMAIN", domain: "nowhere.test", kind: dns.NXDomain},
		{rule: "SERVFAIL", domain: "broken.test", kind: dns.ServFail},
		{rule: "U-labels", domain: "Bücher.test", hosts: "[{10 a.test}]", isMX: true, ttl: 300},
		{rule: "alias to a domain with MX", domain: "alias.test", hosts: "[{10 a.test} {10 z.test} {20 b.test}]", isMX: true, ttl: 100},
		{rule: "IPv4 literal", domain: "[10.0.0.1]", hosts: "[{1 10.0.0.1}]", literal: "10.0.0.1"},
		{rule: "IPv6 literal", domain: "[IPv6:::1]", hosts: "[{1 ::1}]", literal: "::1"},
		{rule: "IPv6 literal without tag", domain: "[2001:db8::1]", hosts: "[{1 2001:db8::1}]", literal: "2001:db8::1"},
		{rule: "IPv4 in IPv6", domain: "[IPv6:::ffff:10.0.0.1]", hosts: "[{1 10.0.0.1}]", literal: "10.0.0.1"},
		{rule: "tag with IPv4", domain: "[IPv6:10.0.0.1]", kind: dns.BadName},
		{rule: "open literal", domain: "[10.0.0.1", kind: dns.BadName},
		{rule: "empty literal", domain: "[]", kind: dns.BadName},
		{rule: "literal with zone", domain: "[fe80::1%eth0]", kind: dns.BadName},
		{rule: "no name", domain: "a b", kind: dns.BadName},
	} {
		res, err := dns.LookupMX(t.Context(), z, c.domain)
		if kind(err) != c.kind {
			t.Errorf("%s: %v, want kind %v", c.rule, err, c.kind)
		}
		if err != nil {
			continue
		}
		if got := fmt.Sprint(res.Hosts); got != c.hosts || res.IsMX != c.isMX || res.NullMX != c.null || res.TTL != c.ttl*time.Second {
			t.Errorf("%s: %+v", c.rule, res)
		}
		if res.Literal != (c.literal != "") || res.Literal && res.Addr != netip.MustParseAddr(c.literal) || res.Secure == res.Literal {
			t.Errorf("%s: %+v", c.rule, res)
		}
	}
}

func TestLookupHost(t *testing.T) {
	z := zones(t, false, "broken.test")
	for _, c := range []struct {
		host string
		s    dns.Strategy
		want string
		ttl  time.Duration
		kind dns.Kind
	}{
		{"both.test", dns.Ipv4AndIpv6, "[192.0.2.1 192.0.2.2 2001:db8::1]", 200, 0},
		{"both.test", dns.Ipv6AndIpv4, "[2001:db8::1 192.0.2.1 192.0.2.2]", 200, 0},
		{"both.test", dns.Ipv4Only, "[192.0.2.1 192.0.2.2]", 300, 0},
		{"both.test", dns.Ipv6Only, "[2001:db8::1]", 200, 0},
		{"both.test", dns.Ipv4ThenIpv6, "[192.0.2.1 192.0.2.2]", 300, 0},
		{"both.test", dns.Ipv6ThenIpv4, "[2001:db8::1]", 200, 0},
		{"v4.test", dns.Ipv4AndIpv6, "[192.0.2.1]", 300, 0},
		{"v4.test", dns.Ipv6ThenIpv4, "[192.0.2.1]", 300, 0},
		{"v4.test", dns.Ipv6Only, "[]", 0, dns.NoData},
		{"v6.test", dns.Ipv4AndIpv6, "[2001:db8::1]", 200, 0},
		{"v6.test", dns.Ipv4ThenIpv6, "[2001:db8::1]", 200, 0},
		{"v6.test", dns.Ipv4Only, "[]", 0, dns.NoData},
		{"two.test", dns.Ipv4AndIpv6, "[]", 0, dns.NoData},
		{"nowhere.test", dns.Ipv6ThenIpv4, "[]", 0, dns.NXDomain},
		{"broken.test", dns.Ipv4AndIpv6, "[]", 0, dns.ServFail},
		{"192.0.2.9", dns.Ipv6Only, "[192.0.2.9]", 0, 0},
	} {
		addrs, ttl, err := dns.LookupIP(t.Context(), z, c.host, c.s)
		if fmt.Sprint(addrs) != c.want || ttl != c.ttl*time.Second || kind(err) != c.kind {
			t.Errorf("%s %v: %v %v %v; want %s %ds", c.host, c.s, addrs, ttl, err, c.want, c.ttl)
		}
	}
	// One family in trouble must not look like a host without addresses.
	half := dns.Func(func(ctx context.Context, name string, qtype dns.Type) (dns.Answer, error) {
		if qtype == dns.TypeAAAA {
			return dns.Answer{}, &dns.Error{Name: name, Type: qtype, Kind: dns.ServFail}
		}
		return z.Lookup(ctx, name, qtype)
	})
	if addrs, _, err := dns.LookupIP(t.Context(), half, "v4.test", dns.Ipv4AndIpv6); err != nil || len(addrs) != 1 {
		t.Errorf("%v, %v", addrs, err)
	}
	for _, s := range []dns.Strategy{dns.Ipv4AndIpv6, dns.Ipv4ThenIpv6, dns.Ipv6ThenIpv4} {
		if _, _, err := dns.LookupIP(t.Context(), half, "v6.test", s); kind(err) != dns.ServFail {
			t.Errorf("%v: %v", s, err)
		}
	}
}

func TestStrategyText(t *testing.T) {
	for s := dns.Ipv4AndIpv6; s <= dns.Ipv6AndIpv4; s++ {
		b, _ := s.MarshalText()
		var got dns.Strategy
		if err := got.UnmarshalText([]byte(strings.ToLower(string(b)))); err != nil || got != s {
			t.Errorf("%s: %v, %v", b, got, err)
		}
	}
	if err := new(dns.Strategy).UnmarshalText([]byte("Ipv5")); err == nil {
		t.Error("Ipv5 is a strategy")
	}
}

func TestLookupTXTAndPTR(t *testing.T) {
	z := dnstest.Zone(t, "a.test. 60 IN TXT \"x\" \"y\"\na.test. 60 IN TXT z\n1.2.0.192.in-addr.arpa. 60 IN PTR A.test.\n")
	txt, err := dns.LookupTXT(t.Context(), z, "a.test")
	if fmt.Sprint(txt) != "[xy z]" || err != nil {
		t.Errorf("%q, %v", txt, err)
	}
	ptr, err := dns.LookupPTR(t.Context(), z, netip.MustParseAddr("192.0.2.1"))
	if fmt.Sprint(ptr) != "[a.test]" || err != nil {
		t.Errorf("%q, %v", ptr, err)
	}
	if _, err = dns.LookupPTR(t.Context(), z, netip.Addr{}); kind(err) != dns.BadName {
		t.Error(err)
	}
}

func TestZones(t *testing.T) {
	z, err := dns.NewZones([]dns.Zone{
		{Text: "$ORIGIN safe.test.\n@ 60 IN SOA ns root 1 2 3 4 5\na 60 IN A 192.0.2.1\nout 60 IN CNAME a.plain.test.\nx.y 60 IN A 192.0.2.3\n", Secure: true},
		{Text: "a.plain.test. IN A 192.0.2.2\nb.plain.test. 60 IN CNAME a.safe.test.\n"},
	}, []string{"Bad.safe.test."})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		qtype  dns.Type
		kind   dns.Kind
		secure bool
		ttl    time.Duration
	}{
		{"a.safe.test", dns.TypeA, 0, true, 60},
		{"a.plain.test", dns.TypeA, 0, false, 300},         // no TTL anywhere
		{"out.safe.test", dns.TypeA, 0, false, 60},         // a chain is as safe as its last link
		{"b.plain.test", dns.TypeA, 0, false, 60},          // and as its first
		{"no.safe.test", dns.TypeA, dns.NXDomain, true, 5}, // RFC 2308 section 4
		{"a.safe.test", dns.TypeMX, dns.NoData, true, 5},
		{"y.safe.test", dns.TypeMX, dns.NoData, true, 5},
		{"no.plain.test", dns.TypeA, dns.NXDomain, false, 300},
		{"else.where", dns.TypeA, dns.NXDomain, false, 300},
		{"bad.safe.test", dns.TypeA, dns.ServFail, false, 0},
	} {
		ans, err := z.Lookup(t.Context(), c.name, c.qtype)
		secure, ttl := ans.Secure, ans.TTL
		var e *dns.Error
		if errors.As(err, &e) {
			secure, ttl = e.Secure, e.TTL
		}
		if kind(err) != c.kind || secure != c.secure || ttl != c.ttl*time.Second {
			t.Errorf("%s %s: secure %t, TTL %v, %v", c.name, c.qtype, secure, ttl, err)
		}
	}
}

func TestZoneErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a.test. 60 IN A 1.2.3", "zone 1"},
		{"$INCLUDE /etc/passwd", "zone 1"},
		{"a.test. 60 IN CNAME b.\na.test. 60 IN CNAME c.\n", "several aliases"},
		{"a.test. 60 IN MX 1 a\\032b.\n", "unusable data"},
	} {
		if _, err := dns.NewZones([]dns.Zone{{Text: c.text}}, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	if _, err := dns.NewZones(nil, []string{"a b"}); err == nil {
		t.Error("a bad name to fail was accepted")
	}
}

func FuzzZones(f *testing.F) {
	f.Add(mxZone, "two.test")
	f.Add("*. 60 IN A 192.0.2.1\n", "x")
	f.Add(". 60 IN CNAME .\n", ".")
	f.Add("$ORIGIN a.\n*.b IN CNAME x.b\n", "q.b.a")
	f.Fuzz(func(t *testing.T, text, name string) {
		z, err := dns.NewZones([]dns.Zone{{Text: text}}, nil)
		if err != nil {
			return
		}
		for _, qtype := range []dns.Type{dns.TypeA, dns.TypeMX, dns.TypeTXT, dns.TypeCNAME} {
			ans, err := z.Lookup(t.Context(), name, qtype)
			if (err == nil) != (len(ans.Records) > 0) {
				t.Fatalf("%q %s: %+v, %v", name, qtype, ans, err)
			}
		}
	})
}
