package dns_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/svc/mta/dns"
	"example.com/svc/mta/dns/dnstest"
)

const zone = `
$ORIGIN example.com.
@    300 IN SOA ns root 1 7200 3600 86400 60
@    300 IN MX 10 mx.example.com.
mx   300 IN A 192.0.2.1
host.corp.test. 300 IN A 192.0.2.9
single. 300 IN A 192.0.2.8
`

// newStub returns a stub that asks the servers, with a short time-out.
func newStub(t testing.TB, edit func(*dns.StubConfig), servers ...*dnstest.Server) *dns.Stub {
	t.Helper()
	c := dns.DefaultStubConfig()
	c.Timeout = 10 * time.Second
	c.Hosts = dns.HostsNever
	for _, s := range servers {
		c.Servers = append(c.Servers, dns.Server{Addr: s.Addr})
	}
	if edit != nil {
		edit(&c)
	}
	s, err := dns.NewStub(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func kind(err error) dns.Kind {
	var e *dns.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return 0
}

func TestContract(t *testing.T) {
	t.Run("Zones", func(t *testing.T) {
		dnstest.Run(t, func(t *testing.T, zone string) dns.Resolver { return dnstest.Zone(t, zone) })
	})
	t.Run("Stub", func(t *testing.T) {
		dnstest.Run(t, func(t *testing.T, zone string) dns.Resolver {
			return newStub(t, nil, dnstest.Serve(t, dnstest.Zone(t, zone)))
		})
	})
	t.Run("Stub of two servers over TCP", func(t *testing.T) {
		dnstest.Run(t, func(t *testing.T, zone string) dns.Resolver {
			z := dnstest.Zone(t, zone)
			return newStub(t, func(c *dns.StubConfig) {
				c.Servers[0].Protocol = dns.TCPOnly
				c.CaseRandomization = true
			}, dnstest.Serve(t, z), dnstest.Serve(t, z))
		})
	})
	t.Run("Aggregate", func(t *testing.T) {
		dnstest.Run(t, func(t *testing.T, zone string) dns.Resolver {
			return dns.Aggregate{dnstest.Zone(t, ""), dnstest.Zone(t, zone)}
		})
	})
}

// TestHostile runs the lines of the DNS section of the list of hostile peers.
func TestHostile(t *testing.T) {
	for _, c := range []struct {
		name string
		b    dnstest.Behaviour
		want dns.Kind // 0 is an answer
	}{
		{"wrong id is dropped", dnstest.WrongID, dns.Timeout},
		{"wrong question is dropped", dnstest.WrongQuestion, dns.Timeout},
		{"garbage is dropped", dnstest.Garbage, dns.Timeout},
		{"silence", dnstest.Silent, dns.Timeout},
		{"forged answers before the right one", dnstest.WrongThenWell, 0},
		{"an answer from another socket is dropped", dnstest.OtherPort, 0},
		{"truncated over UDP goes to TCP", dnstest.Truncated, 0},
		{"truncated over TCP too", dnstest.TruncatedBoth, dns.Malformed},
		{"CNAME loop", dnstest.CNAMELoop, dns.Loop},
		{"server without EDNS0", dnstest.NoEDNS, 0},
		{"refused", dnstest.Refuse, dns.Refused},
		{"SERVFAIL", dnstest.Fail, dns.ServFail},
		{"DNSSEC bogus", dnstest.BogusEDE, dns.Bogus},
		{"referral in place of an answer", dnstest.Referral, dns.ServFail},
		{"records of other names are ignored", dnstest.Strangers, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := dnstest.Serve(t, dnstest.Zone(t, zone))
			srv.Behave("", c.b)
			s := newStub(t, func(cfg *dns.StubConfig) {
				if c.want == dns.Timeout {
					cfg.Timeout, cfg.Attempts = 50*time.Millisecond, 1
				}
			}, srv)
			ans, err := s.Lookup(t.Context(), "mx.example.com", dns.TypeA)
			if kind(err) != c.want {
				t.Fatalf("got %v, want kind %v", err, c.want)
			}
			if c.want != 0 {
				var e *dns.Error
				if errors.As(err, &e); !e.Temporary() {
					t.Errorf("%v is permanent: mail would bounce", err)
				}
				return
			}
			if len(ans.Records) != 1 || ans.Records[0].Addr != netip.MustParseAddr("192.0.2.1") {
				t.Errorf("records %v", ans.Records)
			}
		})
	}
	t.Run("64 KB over TCP", func(t *testing.T) {
		srv := dnstest.Serve(t, dnstest.Zone(t, zone))
		srv.Behave("", dnstest.Huge)
		s := newStub(t, nil, srv)
		ans, err := s.Lookup(t.Context(), "big.example.com", dns.TypeA)
		if err != nil || len(ans.Records) != 1024 {
			t.Fatalf("%d records, %v; want 1024", len(ans.Records), err)
		}
		if n := s.Stats().Cached; n != 0 {
			t.Errorf("%d answers kept, want none of this size", n)
		}
	})
}

func TestFailover(t *testing.T) {
	z := dnstest.Zone(t, zone)
	bad, good := dnstest.Serve(t, z), dnstest.Serve(t, z)
	bad.Behave("", dnstest.Fail)
	for _, parallel := range []int{1, 2} {
		s := newStub(t, func(c *dns.StubConfig) {
			c.Parallel, c.Ordering = parallel, dns.UserProvidedOrder
		}, bad, good)
		if _, err := s.Lookup(t.Context(), "mx.example.com", dns.TypeA); err != nil {
			t.Errorf("parallel %d: %v", parallel, err)
		}
	}
}

func TestDistrustNegative(t *testing.T) {
	empty, full := dnstest.Serve(t, dnstest.Zone(t, "")), dnstest.Serve(t, dnstest.Zone(t, zone))
	s := newStub(t, func(c *dns.StubConfig) {
		c.Parallel, c.Ordering = 1, dns.UserProvidedOrder
	}, empty, full)
	if _, err := s.Lookup(t.Context(), "mx.example.com", dns.TypeA); kind(err) != dns.NXDomain {
		t.Errorf("trusted: %v, want NXDOMAIN of the first server", err)
	}
	s = newStub(t, func(c *dns.StubConfig) {
		c.Parallel, c.Ordering = 1, dns.UserProvidedOrder
		c.Servers[0].DistrustNegative = true
	}, empty, full)
	if _, err := s.Lookup(t.Context(), "mx.example.com", dns.TypeA); err != nil {
		t.Errorf("distrusted: %v, want the answer of the second server", err)
	}
	if _, err := s.Lookup(t.Context(), "no.example.com", dns.TypeA); kind(err) != dns.NXDomain {
		t.Errorf("both say no: %v", err)
	}
}

func TestTransports(t *testing.T) {
	srv := dnstest.Serve(t, dnstest.Zone(t, zone))
	srv.Behave("cut.example.com", dnstest.Truncated)
	udpDown := func(ctx context.Context, network string, s dns.Server) (net.Conn, error) {
		if network == "udp" {
			return nil, syscall.ENETUNREACH
		}
		return new(net.Dialer).DialContext(ctx, network, s.Addr.String())
	}
	for _, c := range []struct {
		name string
		host string
		edit func(*dns.StubConfig)
		want dns.Kind
	}{
		{"UDP down", "mx", func(c *dns.StubConfig) { c.Dial = udpDown }, dns.Network},
		{"UDP down, TCP on error", "mx", func(c *dns.StubConfig) { c.Dial, c.TryTCPOnError = udpDown, true }, 0},
		{"UDP down, TCP only", "mx", func(c *dns.StubConfig) { c.Dial, c.Servers[0].Protocol = udpDown, dns.TCPOnly }, 0},
		{"cut, UDP only", "cut", func(c *dns.StubConfig) { c.Servers[0].Protocol = dns.UDPOnly }, dns.Malformed},
		{"local address", "mx", func(c *dns.StubConfig) { c.Servers[0].Bind = netip.MustParseAddrPort("127.0.0.1:0") }, 0},
		{"no such local address", "mx", func(c *dns.StubConfig) { c.Servers[0].Bind = netip.MustParseAddrPort("192.0.2.77:0") }, dns.Network},
	} {
		s := newStub(t, c.edit, srv)
		if _, err := s.Lookup(t.Context(), c.host+".example.com", dns.TypeA); kind(err) != c.want {
			t.Errorf("%s: %v, want kind %v", c.name, err, c.want)
		}
	}
}

func TestCloseEndsLookups(t *testing.T) {
	srv := dnstest.Serve(t, dnstest.Zone(t, zone))
	srv.Behave("", dnstest.Silent)
	arrived := make(chan struct{}, 8)
	srv.OnQuery(func(string, dns.Type) { arrived <- struct{}{} })
	s := newStub(t, nil, srv)
	errs := make(chan error, 1)
	go func() {
		_, err := s.Lookup(t.Context(), "mx.example.com", dns.TypeA)
		errs <- err
	}()
	<-arrived
	s.Close()
	if err := <-errs; kind(err) != dns.Canceled {
		t.Errorf("lookup at Close: %v", err)
	}
	if _, err := s.Lookup(t.Context(), "mx.example.com", dns.TypeA); kind(err) != dns.Canceled {
		t.Errorf("lookup after Close: %v", err)
	}
}

func TestSearchAndHosts(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(hosts, []byte("192.0.2.7 local mx.example.com # text\n::1 local\nbad line\n192.0.2.6 only4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := dnstest.Serve(t, dnstest.Zone(t, zone))
	open := func(mode dns.HostsMode) *dns.Stub {
		return newStub(t, func(c *dns.StubConfig) {
			c.Hosts, c.HostsFile, c.Search = mode, hosts, []string{"corp.test", "other.test"}
		}, srv)
	}
	for _, c := range []struct {
		mode  dns.HostsMode
		name  string
		qtype dns.Type
		want  string
	}{
		{dns.HostsAuto, "local", dns.TypeA, "192.0.2.7"},
		{dns.HostsAuto, "local", dns.TypeAAAA, "::1"},
		{dns.HostsAuto, "only4", dns.TypeAAAA, "no such record"},
		{dns.HostsAuto, "local.", dns.TypeA, "no such domain"},
		{dns.HostsAuto, "mx.example.com", dns.TypeA, "192.0.2.1"},
		{dns.HostsAlways, "mx.example.com", dns.TypeA, "192.0.2.7"},
		{dns.HostsAlways, "mx.example.com.", dns.TypeA, "192.0.2.7"},
		{dns.HostsNever, "local", dns.TypeA, "no such domain"},
		{dns.HostsAuto, "host", dns.TypeA, "192.0.2.9"},
		{dns.HostsAuto, "host.", dns.TypeA, "no such domain"},
		{dns.HostsAuto, "single", dns.TypeA, "192.0.2.8"},
		{dns.HostsAuto, "host", dns.TypeMX, "no such domain"}, // MX lookups are absolute
	} {
		ans, err := open(c.mode).Lookup(t.Context(), c.name, c.qtype)
		got := kind(err).String()
		if err == nil {
			got = ans.Records[0].Addr.String()
		}
		if got != c.want {
			t.Errorf("%v: %s %s: %s, want %s", c.mode, c.name, c.qtype, got, c.want)
		}
	}
}

func TestSecureNeedsTrust(t *testing.T) {
	z, err := dns.NewZones([]dns.Zone{{Text: zone, Secure: true}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv := dnstest.Serve(t, z)
	for _, trust := range []bool{false, true} {
		s := newStub(t, func(c *dns.StubConfig) { c.TrustAD = trust }, srv)
		ans, err := s.Lookup(t.Context(), "mx.example.com", dns.TypeA)
		if err != nil || ans.Secure != trust {
			t.Errorf("trust %t: secure %t, %v", trust, ans.Secure, err)
		}
		_, err = s.Lookup(t.Context(), "mx.example.com", dns.TypeMX)
		var e *dns.Error
		if !errors.As(err, &e) || e.Secure != trust {
			t.Errorf("trust %t: absence: %v", trust, err)
		}
	}
}

func TestChainAcrossMessages(t *testing.T) {
	// Each answer ends in an alias, so every link is a question of its own.
	chain := dns.Func(func(_ context.Context, name string, qtype dns.Type) (dns.Answer, error) {
		var n int
		if _, err := fmt.Sscanf(name, "c%d.test", &n); err != nil || n == 0 {
			return dns.Answer{Name: name, Records: []dns.Record{{Addr: netip.MustParseAddr("192.0.2.1")}}, TTL: time.Minute}, nil
		}
		return dns.Answer{Name: fmt.Sprintf("c%d.test", n-1), Aliases: []string{name}, TTL: time.Minute}, nil
	})
	s := newStub(t, nil, dnstest.Serve(t, chain))
	ans, err := s.Lookup(t.Context(), "c8.test", dns.TypeA)
	if err != nil || ans.Name != "c0.test" || len(ans.Aliases) != 8 {
		t.Errorf("8 aliases: %+v, %v", ans, err)
	}
	if _, err := s.Lookup(t.Context(), "c9.test", dns.TypeA); kind(err) != dns.Loop {
		t.Errorf("9 aliases: %v", err)
	}
}

func TestSettingNames(t *testing.T) {
	for _, c := range []struct {
		v    interface{ MarshalText() ([]byte, error) }
		into interface{ UnmarshalText([]byte) error }
		want string
	}{
		{dns.TCPOnly, new(dns.Protocol), "tcp"},
		{dns.UDPThenTCP, new(dns.Protocol), "udp_then_tcp"},
		{dns.HostsNever, new(dns.HostsMode), "Never"},
		{dns.RoundRobin, new(dns.Ordering), "RoundRobin"},
	} {
		b, err := c.v.MarshalText()
		if err != nil || string(b) != c.want {
			t.Errorf("%q, %v; want %q", b, err, c.want)
		}
		if err := c.into.UnmarshalText(b); err != nil || fmt.Sprint(c.into.(fmt.Stringer)) != c.want {
			t.Errorf("%q is read as %v, %v", b, c.into, err)
		}
		if err := c.into.UnmarshalText([]byte("nonsense")); err == nil || fmt.Sprint(c.into.(fmt.Stringer)) != c.want {
			t.Errorf("nonsense is read as %v, %v", c.into, err)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	addr := dns.Server{Addr: netip.MustParseAddrPort("127.0.0.1:53")}
	for _, c := range []struct {
		cfg  dns.StubConfig
		want string
	}{
		{dns.StubConfig{}, "0 name servers"},
		{dns.StubConfig{Servers: []dns.Server{{}}}, "address and a port"},
		{dns.StubConfig{Servers: []dns.Server{addr}, Attempts: -1}, "attempts"},
		{dns.StubConfig{Servers: []dns.Server{addr}, Timeout: time.Hour}, "timeout"},
		{dns.StubConfig{Servers: []dns.Server{addr}, PositiveMinTTL: 48 * time.Hour}, "positive_min_ttl"},
		{dns.StubConfig{Servers: []dns.Server{addr}, Search: []string{"a b"}}, "not a domain name"},
		{dns.StubConfig{Servers: slices.Repeat([]dns.Server{addr}, 17)}, "17 name servers"},
	} {
		_, err := dns.NewStub(c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func BenchmarkCachedLookup(b *testing.B) {
	srv := dnstest.Serve(b, dnstest.Zone(b, zone))
	s := newStub(b, nil, srv)
	ctx := b.Context()
	if _, err := s.Lookup(ctx, "example.com", dns.TypeMX); err != nil {
		b.Fatal(err)
	}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Lookup(ctx, "example.com", dns.TypeMX); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Lookup(ctx, "example.com", dns.TypeMX); err != nil {
					b.Error(err)
				}
			}
		})
	})
	if n := srv.Queries("example.com"); n != 1 {
		b.Errorf("%d questions sent", n)
	}
}

func BenchmarkUncachedLookup(b *testing.B) {
	s := newStub(b, nil, dnstest.Serve(b, dnstest.Zone(b, strings.ReplaceAll(zone, " 300 ", " 0 "))))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Lookup(b.Context(), "example.com", dns.TypeMX); err != nil {
			b.Fatal(err)
		}
	}
}
