package route

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta/dns"
	"example.com/svc/mta/dns/dnstest"
	"example.com/svc/mta/metric"
)

const zone = `
$ORIGIN test.
@      300 IN SOA ns root 1 7200 3600 86400 60
mail   300 IN MX 10 mx2
mail   300 IN MX 10 mx1
mail   300 IN MX 20 backup
mx1    300 IN A 192.0.2.1
mx1    300 IN A 192.0.2.2
mx1    300 IN AAAA 2001:db8::1
mx2    300 IN A 192.0.2.3
mx2    300 IN A 192.0.2.2
backup 300 IN A 192.0.2.9
plain  300 IN A 192.0.2.4
null   300 IN MX 0 .
viacn  300 IN MX 10 cn
cn     300 IN CNAME mx2
partly 300 IN MX 10 nowhere
partly 300 IN MX 20 mx2
dead   300 IN MX 10 nowhere
sick   300 IN MX 10 nowhere
sick   300 IN MX 20 broken
bad    300 IN MX 10 192.0.2.1.
zero     0 IN MX 10 mx1
`

// counter counts lookups by type, and may hold them up.
type counter struct {
	r    dns.Resolver
	mx   atomic.Int32
	hold func(ctx context.Context) error
}

func (c *counter) Lookup(ctx context.Context, name string, qtype dns.Type) (dns.Answer, error) {
	if qtype == dns.TypeMX {
		c.mx.Add(1)
		if c.hold != nil {
			if err := c.hold(ctx); err != nil {
				return dns.Answer{}, &dns.Error{Name: name, Type: qtype, Kind: dns.Timeout, Err: err}
			}
		}
	}
	return c.r.Lookup(ctx, name, qtype)
}

func newPlanner(t testing.TB, text string, edit func(*Config)) (*Planner, *counter) {
	t.Helper()
	z, err := dns.NewZones([]dns.Zone{{Text: text, Secure: true}}, []string{"broken.test"})
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{r: z}
	cfg := Config{Resolver: c}
	if edit != nil {
		edit(&cfg)
	}
	p, err := NewPlanner(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p, c
}

func kind(err error) dns.Kind {
	var e *dns.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

func TestPlan(t *testing.T) {
	p, _ := newPlanner(t, zone, nil)
	for _, c := range []struct {
		rule, domain, site, hosts string
		null, literal, isMX       bool
		kind                      dns.Kind
	}{
		{rule: "SC-1 preference, then name", domain: "Mail.Test.", site: "(mx1|mx2|backup).test", hosts: "mx1.test/10 mx2.test/10 backup.test/20", isMX: true},
		{rule: "SC-1 no MX", domain: "plain.test", site: "plain.test", hosts: "plain.test/1"},
		{rule: "SC-1 NXDOMAIN", domain: "nowhere.test", kind: dns.NXDomain},
		{rule: "SC-1 null MX", domain: "null.test", site: "null.test", null: true, isMX: true},
		{rule: "SC-1 MX that is an alias keeps its name", domain: "viacn.test", site: "cn.test", hosts: "cn.test/10", isMX: true},
		{rule: "SC-2 port", domain: "mail.test:2025", site: "(mx1|mx2|backup).test:2025", hosts: "mx1.test:2025/10 mx2.test:2025/10 backup.test:2025/20", isMX: true},
		{rule: "SC-2 literal", domain: "[10.0.0.1]", site: "10.0.0.1", hosts: "10.0.0.1=10.0.0.1/1", literal: true},
		{rule: "SC-2 IPv6 literal", domain: "[IPv6:2001:DB8::1]", site: "2001:db8::1", hosts: "2001:db8::1=2001:db8::1/1", literal: true},
		{rule: "SC-2 literal with port", domain: "[10.0.0.1]:26", site: "10.0.0.1:26", hosts: "10.0.0.1:26=10.0.0.1/1", literal: true},
		{rule: "SC-2 IPv6 literal with port", domain: "[::1]:26", site: "[::1]:26", hosts: "[::1]:26=::1/1", literal: true},
		{rule: "failure", domain: "broken.test", kind: dns.ServFail},
		{rule: "no name", domain: "a b", kind: dns.BadName},
		{rule: "no host name", domain: "a|b.test", kind: dns.BadName},
		{rule: "bad port", domain: "mail.test:99999", kind: dns.BadName},
		{rule: "bad literal", domain: "[10.0.0.300]", kind: dns.BadName},
	} {
		plan, err := p.Plan(t.Context(), c.domain)
		if kind(err) != c.kind {
			t.Errorf("%s: %v, want kind %v", c.rule, err, c.kind)
		}
		if err != nil {
			continue
		}
		if got := showHosts(plan); got != c.hosts || plan.Site != c.site {
			t.Errorf("%s: site %q hosts %q, want %q %q", c.rule, plan.Site, got, c.site, c.hosts)
		}
		if plan.NullMX != c.null || plan.Literal != c.literal || plan.IsMX != c.isMX || plan.Secure == c.literal || !plan.Expires.After(time.Now()) {
			t.Errorf("%s: %+v", c.rule, plan)
		}
	}
}

func showHosts(p *Plan) string {
	var out []string
	for _, h := range p.Hosts {
		s := withPort(h.Name, h.Port)
		if h.Addr.IsValid() {
			s += "=" + h.Addr.String()
		}
		out = append(out, fmt.Sprintf("%s/%d", s, h.Pref))
	}
	return strings.Join(out, " ")
}

func TestTargets(t *testing.T) {
	p, _ := newPlanner(t, zone, nil)
	for _, c := range []struct {
		rule, domain string
		s            dns.Strategy
		levels       []string // the addresses of each level, sorted
		err          error
		kind         dns.Kind
	}{
		{rule: "SC-3 levels in ascending order", domain: "mail.test", s: dns.Ipv4Only, levels: []string{"192.0.2.1 192.0.2.2 192.0.2.3", "192.0.2.9"}},
		{rule: "SC-3 both families", domain: "mail.test", levels: []string{"192.0.2.1 192.0.2.2 192.0.2.3 2001:db8::1", "192.0.2.9"}},
		{rule: "SC-3 IPv6 first", domain: "mail.test", s: dns.Ipv6ThenIpv4, levels: []string{"192.0.2.2 192.0.2.3 2001:db8::1", "192.0.2.9"}},
		{rule: "SC-3 IPv6 only", domain: "mail.test", s: dns.Ipv6Only, levels: []string{"2001:db8::1"}},
		{rule: "SC-3 hosts that do not resolve are skipped", domain: "partly.test", levels: []string{"192.0.2.2 192.0.2.3"}},
		{rule: "MX to an alias", domain: "viacn.test", levels: []string{"192.0.2.2 192.0.2.3"}},
		{rule: "literal", domain: "[10.0.0.1]", levels: []string{"10.0.0.1"}},
		{rule: "SC-5 no addresses", domain: "dead.test", err: ErrNoAddresses, kind: dns.NXDomain},
		{rule: "SC-5 no addresses, perhaps later", domain: "sick.test", err: ErrNoAddresses, kind: dns.ServFail},
		{rule: "MX to an address is no host (RFC 5321 section 5.1)", domain: "bad.test", err: ErrNoAddresses, kind: dns.NXDomain},
		{rule: "SC-5 null MX", domain: "null.test", err: ErrNullMX},
	} {
		plan, err := p.Plan(t.Context(), c.domain)
		if err != nil {
			t.Fatal(c.rule, err)
		}
		ts, err := p.Targets(t.Context(), plan, c.s)
		if !errors.Is(err, c.err) || kind(err) != c.kind {
			t.Errorf("%s: %v, want %v", c.rule, err, c.err)
		}
		for _, level := range c.levels {
			want := map[string]bool{}
			for a := range strings.FieldsSeq(level) {
				want[a] = true
			}
			if len(ts) < len(want) {
				t.Fatalf("%s: %v, want %s", c.rule, ts, level)
			}
			for _, tg := range ts[:len(want)] {
				if !want[tg.Addr.String()] {
					t.Errorf("%s: %v at this level, or twice; want %s", c.rule, tg.Addr, level)
				}
				delete(want, tg.Addr.String())
			}
			ts = ts[len(strings.Fields(level)):]
		}
		if len(ts) != 0 {
			t.Errorf("%s: also %v", c.rule, ts)
		}
	}
}

func TestTargetsAreShuffled(t *testing.T) {
	p, _ := newPlanner(t, zone, nil)
	plan, err := p.Plan(t.Context(), "mail.test")
	if err != nil {
		t.Fatal(err)
	}
	first := map[netip.Addr]bool{}
	for range 200 {
		ts, err := p.Targets(t.Context(), plan, dns.Ipv4Only)
		if err != nil {
			t.Fatal(err)
		}
		first[ts[0].Addr] = true
	}
	if len(first) != 3 {
		t.Errorf("SC-3: %v came first in 200 tries, want each of 3", first)
	}
}

func TestPlanList(t *testing.T) {
	p, c := newPlanner(t, zone, nil)
	var entries []MXEntry
	for _, s := range []string{"mx2.test", "MX1.test:2025", "[10.0.0.1]:26", "nowhere.test"} {
		e, err := ParseMXEntry(s)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	entries = append(entries, MXEntry{Name: "far.test", Addr: netip.MustParseAddr("192.0.2.77")})
	plan := p.PlanList(entries)
	if want := "mx_list:mx2.test,mx1.test:2025,[10.0.0.1]:26,nowhere.test,far.test"; plan.Site != want {
		t.Errorf("QN-4: site %q, want %q", plan.Site, want)
	}
	ts, err := p.Targets(t.Context(), plan, dns.Ipv6ThenIpv4)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tg := range ts {
		if tg.Name != "mx2.test" { // two addresses in any order
			got = append(got, withPort(tg.Addr.String(), tg.Port)+" "+tg.Name)
		}
	}
	if want := "[2001:db8::1]:2025 mx1.test,10.0.0.1:26 10.0.0.1,192.0.2.77 far.test"; strings.Join(got, ",") != want || ts[0].Name != "mx2.test" || ts[1].Name != "mx2.test" {
		t.Errorf("SC-4: %v, want %s", ts, want)
	}
	if c.mx.Load() != 0 {
		t.Error("SC-4: a list needs no MX lookup")
	}
	if _, err := p.Targets(t.Context(), p.PlanList(nil), 0); !errors.Is(err, ErrNoAddresses) {
		t.Errorf("empty list: %v", err)
	}
}

func TestBounds(t *testing.T) {
	var z strings.Builder
	for i := range 200 {
		fmt.Fprintf(&z, "many.test. 300 IN MX %d h%03d.test.\n", 1000-i, i)
		for j := range 3 {
			fmt.Fprintf(&z, "h%03d.test. 300 IN A 198.18.%d.%d\n", i, i, j)
		}
	}
	p, _ := newPlanner(t, z.String(), nil)
	plan, err := p.Plan(t.Context(), "many.test")
	if err != nil || len(plan.Hosts) != 32 || plan.Hosts[0].Name != "h199.test" {
		t.Fatalf("200 MX: %d hosts, %v", len(plan.Hosts), err)
	}
	ts, err := p.Targets(t.Context(), plan, dns.Ipv4Only)
	if err != nil || len(ts) != 64 || ts[0].Name != "h199.test" || ts[63].Name != "h178.test" {
		t.Errorf("200 MX: %d targets, %v", len(ts), err)
	}
	small, _ := newPlanner(t, zone, func(c *Config) { c.CacheSize = 2 })
	for _, d := range []string{"mail.test", "plain.test", "nowhere.test", "null.test"} {
		_, _ = small.Plan(t.Context(), d)
	}
	if n := small.Known(); n != 2 {
		t.Errorf("%d domains remembered, want 2", n)
	}
}

// TestExpiry checks R1 and the 5 minutes of SC-6.
func TestExpiry(t *testing.T) {
	for _, c := range []struct {
		rule, domain string
		wait         time.Duration
		want         int32
	}{
		{"R1 within the TTL", "mail.test", 299 * time.Second, 1},
		{"R1 at the end of the TTL", "mail.test", 300 * time.Second, 2},
		{"R1 absence of MX has the TTL of RFC 2308", "plain.test", 60 * time.Second, 2},
		{"R1 TTL 0", "zero.test", 0, 2},
		{"SC-6 a failure is kept 5 minutes", "nowhere.test", 299 * time.Second, 1},
		{"SC-6 but no longer", "nowhere.test", 300 * time.Second, 2},
		{"SC-6 SERVFAIL too", "broken.test", 299 * time.Second, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, count := newPlanner(t, zone, nil)
			_, err1 := p.Plan(t.Context(), c.domain)
			time.Sleep(c.wait)
			_, err2 := p.Plan(t.Context(), strings.ToUpper(c.domain)+".")
			if n := count.mx.Load(); n != c.want || kind(err1) != kind(err2) {
				t.Errorf("%s: %d lookups, want %d (%v, %v)", c.rule, n, c.want, err1, err2)
			}
		})
	}
}

func TestForget(t *testing.T) {
	p, c := newPlanner(t, zone, nil)
	for range 2 {
		if _, err := p.Plan(t.Context(), "mail.test"); err != nil {
			t.Fatal(err)
		}
		p.Forget("Mail.Test.")
	}
	if n := c.mx.Load(); n != 2 {
		t.Errorf("%d lookups, want 2", n)
	}
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPlanner(t, zone, nil)
		c.hold = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		start := time.Now()
		_, err := p.Plan(t.Context(), "mail.test")
		if d := time.Since(start); d != 5*time.Second || kind(err) != dns.Timeout {
			t.Errorf("SC-6: %v after %v, want a timeout after 5 s", err, d)
		}
		if _, err = p.Plan(t.Context(), "mail.test"); kind(err) != dns.Timeout || c.mx.Load() != 1 {
			t.Errorf("SC-6: the timeout was not remembered: %v", err)
		}
	})
}

// TestShared checks that lookups of one domain are one, and go on when the
// caller that does it leaves.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, c := newPlanner(t, zone, nil)
		release := make(chan struct{})
		c.hold = func(ctx context.Context) error {
			select {
			case <-release:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		first, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var left error
		wg.Go(func() { _, left = p.Plan(first, "mail.test") })
		synctest.Wait()
		plans := make([]*Plan, 20)
		for i := range plans {
			wg.Go(func() {
				var err error
				if plans[i], err = p.Plan(t.Context(), "mail.test"); err != nil {
					t.Error(err)
				}
			})
		}
		waiting, leave := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, err := p.Plan(waiting, "mail.test"); !errors.Is(err, context.Canceled) {
				t.Errorf("a waiter that left: %v", err)
			}
		})
		synctest.Wait()
		if n := c.mx.Load(); n != 1 {
			t.Errorf("%d lookups in flight, want 1", n)
		}
		leave()
		cancel()
		synctest.Wait()
		close(release)
		wg.Wait()
		if !errors.Is(left, context.Canceled) {
			t.Errorf("the first caller: %v", left)
		}
		for _, plan := range plans {
			if plan != plans[0] || plan == nil {
				t.Fatal("not all have the same plan")
			}
		}
		if n := c.mx.Load(); n != 2 {
			t.Errorf("%d lookups, want one more after the first caller left", n)
		}
	})
}

func TestConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := metric.NewSet()
		p, c := newPlanner(t, zone, func(c *Config) { c.Metrics = set })
		release := make(chan struct{})
		c.hold = func(context.Context) error { <-release; return nil }
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var gone atomic.Int32
		for i := range 200 {
			wg.Go(func() {
				if _, err := p.Plan(ctx, fmt.Sprintf("d%d.test", i)); kind(err) == dns.Canceled {
					gone.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := c.mx.Load(); n != 128 {
			t.Errorf("SC-6: %d lookups at one time, want 128", n)
		}
		checkMetric(t, set, "dns_mx_resolve_in_progress 128")
		cancel()
		synctest.Wait()
		if n := gone.Load(); n != 72 {
			t.Errorf("%d of those that waited for their turn left, want 72", n)
		}
		close(release)
		wg.Wait()
		checkMetric(t, set, "dns_mx_resolve_in_progress 0")
	})
}

func checkMetric(t *testing.T, set *metric.Set, line string) {
	t.Helper()
	var b bytes.Buffer
	if err := set.WritePrometheus(&b, ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "\n"+line+"\n") {
		t.Errorf("want %q in\n%s", line, b.String())
	}
}

func TestMetrics(t *testing.T) {
	set := metric.NewSet()
	p, _ := newPlanner(t, zone, func(c *Config) { c.Metrics = set })
	for _, d := range []string{"mail.test", "mail.test", "nowhere.test", "nowhere.test", "nowhere.test", "[10.0.0.1]"} {
		_, _ = p.Plan(t.Context(), d)
	}
	for _, line := range []string{
		"dns_mx_resolve_cache_hit 3", "dns_mx_resolve_cache_miss 2",
		"dns_mx_resolve_status_ok 1", "dns_mx_resolve_status_fail 1",
	} {
		checkMetric(t, set, line)
	}
}

// TestOverTheWire runs a plan against a name server.
func TestOverTheWire(t *testing.T) {
	srv := dnstest.Serve(t, dnstest.Zone(t, zone))
	cfg := dns.DefaultStubConfig()
	cfg.Servers = []dns.Server{{Addr: srv.Addr}}
	cfg.Search = []string{"test"} // must not apply to names out of the DNS
	s, err := dns.NewStub(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := NewPlanner(Config{Resolver: s})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.Plan(t.Context(), "mail.test")
	if err != nil {
		t.Fatal(err)
	}
	ts, err := p.Targets(t.Context(), plan, dns.Ipv4AndIpv6)
	if err != nil || len(ts) != 5 || ts[4].Name != "backup.test" {
		t.Errorf("%v, %v", ts, err)
	}
	if _, err := p.Plan(t.Context(), "mail"); kind(err) != dns.NXDomain {
		t.Errorf("MX lookups are absolute: %v", err)
	}
	list, err := p.Targets(t.Context(), p.PlanList([]MXEntry{{Name: "backup"}}), dns.Ipv4Only)
	if err != nil || len(list) != 1 {
		t.Errorf("names of a list may be short: %v, %v", list, err)
	}
}

func TestTargetsContext(t *testing.T) {
	p, _ := newPlanner(t, zone, nil)
	plan, err := p.Plan(t.Context(), "mail.test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Targets(ctx, plan, 0); !errors.Is(err, context.Canceled) || errors.Is(err, ErrNoAddresses) {
		t.Errorf("got %v", err)
	}
	if _, err := NewPlanner(Config{}); err == nil {
		t.Error("a planner without resolver")
	}
}

func BenchmarkPlanCached(b *testing.B) {
	p, _ := newPlanner(b, zone, nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Plan(b.Context(), "mail.test"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTargets(b *testing.B) {
	p, _ := newPlanner(b, zone, nil)
	plan, err := p.Plan(b.Context(), "mail.test")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Targets(b.Context(), plan, dns.Ipv4AndIpv6); err != nil {
			b.Fatal(err)
		}
	}
}
