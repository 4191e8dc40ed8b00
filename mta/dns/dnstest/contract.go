package dnstest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/svc/mta/dns"
)

// contractZone is what a resolver under test has to answer from.
const contractZone = `
$ORIGIN example.com.
@       300 IN SOA ns root 1 7200 3600 86400 60
@       300 IN MX 20 mx2.example.com.
@       300 IN MX 10 MX1.Example.COM.
@       300 IN TXT "v=spf1 " "-all"
mx1     120 IN A 192.0.2.1
mx1     120 IN A 192.0.2.2
mx1     120 IN AAAA 2001:db8::1
mx2     300 IN A 192.0.2.3
mapped  300 IN AAAA ::ffff:127.0.0.1
alias   200 IN CNAME alias2
alias2  100 IN CNAME mx1
dangle  300 IN CNAME nowhere
empty   300 IN CNAME mx2
a.b.c   300 IN A 192.0.2.4
*.wild  300 IN A 192.0.2.5
x.wild  300 IN TXT "no wildcard for me"
null    300 IN MX 0 .
round1  300 IN CNAME round2
round2  300 IN CNAME round1
_25._tcp.mx1 300 IN TLSA 3 1 1 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff
1.2.0.192.in-addr.arpa. 300 IN PTR mx1.example.com.
text    300 IN TXT "tab\009 back\\slash \"quoted\""
`

// Run checks that the resolvers open makes keep the contract of dns.Resolver.
// open returns a resolver that answers from the zone text given.
func Run(t *testing.T, open func(t *testing.T, zone string) dns.Resolver) {
	t.Run("answers", func(t *testing.T) { runAnswers(t, open(t, contractZone)) })
	t.Run("failures", func(t *testing.T) { runFailures(t, open(t, contractZone)) })
	t.Run("context", func(t *testing.T) { runContext(t, open(t, contractZone)) })
	t.Run("together", func(t *testing.T) { runTogether(t, open(t, contractZone)) })
}

// show writes a record as text, to compare.
func show(t dns.Type, r dns.Record) string {
	switch t {
	case dns.TypeA, dns.TypeAAAA:
		return r.Addr.String()
	case dns.TypeMX:
		return r.MX.Host
	case dns.TypeTXT:
		return r.Text()
	case dns.TypeTLSA:
		return string([]byte{'0' + r.TLSA.Usage, '0' + r.TLSA.Selector, '0' + r.TLSA.Matching}) + string(r.TLSA.Data[:2])
	}
	return r.Host
}

func runAnswers(t *testing.T, r dns.Resolver) {
	for _, c := range []struct {
		name    string
		qtype   dns.Type
		final   string
		aliases int
		ttl     time.Duration
		want    string // sorted, comma between
	}{
		{"mx1.example.com", dns.TypeA, "mx1.example.com", 0, 120, "192.0.2.1,192.0.2.2"},
		{"MX1.Example.Com.", dns.TypeA, "mx1.example.com", 0, 120, "192.0.2.1,192.0.2.2"},
		{"mx1.example.com", dns.TypeAAAA, "mx1.example.com", 0, 120, "2001:db8::1"},
		{"mapped.example.com", dns.TypeAAAA, "mapped.example.com", 0, 300, "127.0.0.1"},
		{"example.com", dns.TypeMX, "example.com", 0, 300, "mx1.example.com,mx2.example.com"},
		{"null.example.com", dns.TypeMX, "null.example.com", 0, 300, "."},
		{"example.com", dns.TypeTXT, "example.com", 0, 300, "v=spf1 -all"},
		{"text.example.com", dns.TypeTXT, "text.example.com", 0, 300, "tab\t back\\slash \"quoted\""},
		{"1.2.0.192.in-addr.arpa", dns.TypePTR, "1.2.0.192.in-addr.arpa", 0, 300, "mx1.example.com"},
		{"alias.example.com", dns.TypeA, "mx1.example.com", 2, 100, "192.0.2.1,192.0.2.2"},
		{"alias.example.com", dns.TypeCNAME, "alias.example.com", 0, 200, "alias2.example.com"},
		{"any.wild.example.com", dns.TypeA, "any.wild.example.com", 0, 300, "192.0.2.5"},
		{"any.thing.wild.example.com", dns.TypeA, "any.thing.wild.example.com", 0, 300, "192.0.2.5"},
		{"_25._tcp.mx1.example.com", dns.TypeTLSA, "_25._tcp.mx1.example.com", 0, 300, "311\x00\x11"},
	} {
		ans, err := r.Lookup(t.Context(), c.name, c.qtype)
		if err != nil {
			t.Errorf("%s %s: %v", c.name, c.qtype, err)
			continue
		}
		var got []string
		for _, rec := range ans.Records {
			got = append(got, show(c.qtype, rec))
		}
		slices.Sort(got)
		if g := strings.Join(got, ","); g != c.want || ans.Name != c.final || len(ans.Aliases) != c.aliases {
			t.Errorf("%s %s: %q at %s after %d aliases, want %q at %s after %d",
				c.name, c.qtype, g, ans.Name, len(ans.Aliases), c.want, c.final, c.aliases)
		}
		if ans.TTL <= 0 || ans.TTL > c.ttl*time.Second {
			t.Errorf("%s %s: TTL %v, want at most %ds", c.name, c.qtype, ans.TTL, c.ttl)
		}
	}
}

func runFailures(t *testing.T, r dns.Resolver) {
	long := strings.Repeat("a.", 126) // 252 characters
	for _, c := range []struct {
		name  string
		qtype dns.Type
		want  dns.Kind
	}{
		{"nowhere.example.com", dns.TypeA, dns.NXDomain},
		{"dangle.example.com", dns.TypeA, dns.NXDomain},
		{"elsewhere.test", dns.TypeMX, dns.NXDomain},
		{"mx2.example.com", dns.TypeAAAA, dns.NoData},
		{"empty.example.com", dns.TypeAAAA, dns.NoData},
		{"b.c.example.com", dns.TypeA, dns.NoData},        // RFC 4592 section 2.2.2
		{"x.wild.example.com", dns.TypeA, dns.NoData},     // RFC 4592 section 2.2.1
		{"y.x.wild.example.com", dns.TypeA, dns.NXDomain}, // the closest encloser is x.wild
		{long + "a", dns.TypeA, dns.NXDomain},             // 255 octets
		{long + "aa", dns.TypeA, dns.BadName},             // 256 octets
		{strings.Repeat("a", 64) + ".example.com", dns.TypeA, dns.BadName},
		{"", dns.TypeA, dns.BadName},
		{"a..b", dns.TypeA, dns.BadName},
		{".a", dns.TypeA, dns.BadName},
		{"a b.example.com", dns.TypeA, dns.BadName},
		{"a\x00b.example.com", dns.TypeA, dns.BadName},
	} {
		_, err := r.Lookup(t.Context(), c.name, c.qtype)
		var e *dns.Error
		if !errors.As(err, &e) || e.Kind != c.want {
			t.Errorf("%.40q %s: %v, want %v", c.name, c.qtype, err, c.want)
			continue
		}
		if nf := c.want == dns.NXDomain || c.want == dns.NoData; dns.IsNotFound(err) != nf || e.Temporary() {
			t.Errorf("%.40q: not found %t, temporary %t", c.name, dns.IsNotFound(err), e.Temporary())
		}
	}
	// A circle of aliases is a failure that may pass: no mail bounces for it.
	_, err := r.Lookup(t.Context(), "round1.example.com", dns.TypeA)
	var e *dns.Error
	if !errors.As(err, &e) || !e.Temporary() {
		t.Errorf("circle of aliases: %v, want a temporary failure", err)
	}
}

func runContext(t *testing.T, r dns.Resolver) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Lookup(ctx, "mx2.example.com", dns.TypeA)
	var e *dns.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &e) || !e.Temporary() {
		t.Errorf("with a cancelled context: %v", err)
	}
}

func runTogether(t *testing.T, r dns.Resolver) {
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			addrs, _, err := dns.LookupIP(t.Context(), r, "alias.example.com", dns.Ipv4AndIpv6)
			if err != nil || len(addrs) != 3 || !slices.Contains(addrs, netip.MustParseAddr("2001:db8::1")) {
				t.Errorf("addresses %v, %v", addrs, err)
			}
		})
	}
	wg.Wait()
}
