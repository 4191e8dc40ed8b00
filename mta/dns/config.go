package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Protocol says how a server is asked.
type Protocol uint8

// The protocols of settings name_servers.protocol. The zero value is UDPThenTCP.
const (
	UDPThenTCP Protocol = iota // UDP; TCP when the answer is cut (RFC 7766 section 5)
	UDPOnly                    // UDP; a cut answer is a failure
	TCPOnly                    // TCP
)

var protocolText = [...]string{"udp_then_tcp", "udp", "tcp"}

// String returns the name used in settings.
func (p Protocol) String() string { return nameOf(protocolText[:], uint8(p)) }

// MarshalText returns the name used in settings.
func (p Protocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the name used in settings, in any case.
func (p *Protocol) UnmarshalText(b []byte) error {
	i, err := indexOf("protocol", protocolText[:], b)
	if err == nil {
		*p = Protocol(i)
	}
	return err
}

// HostsMode says when the hosts file is asked (settings use_hosts_file).
type HostsMode uint8

// The modes. The zero value is HostsAuto.
const (
	HostsAuto   HostsMode = iota // for names of one label without trailing dot
	HostsAlways                  // for every address lookup
	HostsNever                   // not at all
)

var hostsText = [...]string{"Auto", "Always", "Never"}

// String returns the name used in settings.
func (h HostsMode) String() string { return nameOf(hostsText[:], uint8(h)) }

// MarshalText returns the name used in settings.
func (h HostsMode) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads the name used in settings, in any case.
func (h *HostsMode) UnmarshalText(b []byte) error {
	i, err := indexOf("use_hosts_file", hostsText[:], b)
	if err == nil {
		*h = HostsMode(i)
	}
	return err
}

// Ordering says which server is asked first (settings server_ordering_strategy).
type Ordering uint8

// The orderings. The zero value is QueryStatistics.
const (
	QueryStatistics   Ordering = iota // the one that answered fastest of late
	RoundRobin                        // each in turn
	UserProvidedOrder                 // as listed
)

var orderingText = [...]string{"QueryStatistics", "RoundRobin", "UserProvidedOrder"}

// String returns the name used in settings.
func (o Ordering) String() string { return nameOf(orderingText[:], uint8(o)) }

// MarshalText returns the name used in settings.
func (o Ordering) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name used in settings, in any case.
func (o *Ordering) UnmarshalText(b []byte) error {
	i, err := indexOf("server_ordering_strategy", orderingText[:], b)
	if err == nil {
		*o = Ordering(i)
	}
	return err
}

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprint(i)
}

func indexOf(what string, names []string, b []byte) (int, error) {
	for i, n := range names {
		if strings.EqualFold(n, string(b)) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q, want one of %s", what, b, strings.Join(names, ", "))
}

// Server is a recursive name server.
type Server struct {
	// Addr is where it listens.
	Addr netip.AddrPort
	// Protocol is how it is asked.
	Protocol Protocol
	// DistrustNegative asks the other servers too before "not found" is believed
	// (settings trust_negative_responses = false).
	DistrustNegative bool
	// Bind is the local address of queries; the zero value leaves it to the
	// system. A port of 0 keeps source ports random.
	Bind netip.AddrPort
}

// Dial opens a connection to a server; network is "udp" or "tcp".
type Dial func(ctx context.Context, network string, s Server) (net.Conn, error)

// StubConfig is how a Stub works. Begin with DefaultStubConfig: sizes and times
// of zero are replaced by the defaults, but false means false.
type StubConfig struct {
	// Servers are asked for every name; at least one, at most 16.
	Servers []Server
	// Search is appended in turn to names with fewer than Ndots dots and no
	// trailing dot, in address lookups; then the bare name is tried.
	Search []string
	// Ndots is how many dots make a name absolute; DefaultStubConfig says 1, at
	// most 15, and 0 means that Search is not used.
	Ndots int
	// Timeout is for one request to one server; default 5 s.
	Timeout time.Duration
	// Attempts is how many times the list of servers is gone through; default 2.
	Attempts int
	// Parallel is how many servers are asked at the same time; default 2.
	Parallel int
	// Ordering picks the server to begin with.
	Ordering Ordering
	// CacheSize is the number of answers kept; default 8192.
	CacheSize int
	// PositiveMinTTL and PositiveMaxTTL clamp the TTL of answers; default 0 and 24 h.
	PositiveMinTTL, PositiveMaxTTL time.Duration
	// NegativeMinTTL and NegativeMaxTTL clamp the TTL of "not found"; default 0
	// and 3 h (RFC 2308 section 5).
	NegativeMinTTL, NegativeMaxTTL time.Duration
	// FailureTTL is how long other failures of the servers are remembered; default
	// 5 s, at most 5 min (RFC 9520 section 3.2).
	FailureTTL time.Duration
	// MaxQueries bounds the requests on the wire at one time; default 512.
	MaxQueries int
	// EDNS0 announces room for larger UDP answers (RFC 6891); default true.
	EDNS0 bool
	// RecursionDesired sets the RD bit; default true.
	RecursionDesired bool
	// CaseRandomization mixes the case of the question over UDP, and demands it back.
	CaseRandomization bool
	// TryTCPOnError asks the same server over TCP after a failure over UDP.
	TryTCPOnError bool
	// TrustAD takes the AD bit of the servers as proof of validation. Only for
	// servers on this machine or on a trusted path (RFC 6840 section 5.7).
	TrustAD bool
	// Hosts says when the hosts file is asked; HostsFile is its path, default /etc/hosts.
	Hosts     HostsMode
	HostsFile string
	// Dial replaces the sockets, for tests. By default each UDP request has a fresh
	// socket with a port drawn by the system.
	Dial Dial
}

// DefaultStubConfig returns the defaults, without servers.
func DefaultStubConfig() StubConfig {
	c := StubConfig{EDNS0: true, RecursionDesired: true, Ndots: 1}
	c.fill()
	return c
}

func (c *StubConfig) fill() {
	def(&c.Timeout, 5*time.Second)
	def(&c.Attempts, 2)
	def(&c.Parallel, 2)
	def(&c.CacheSize, 8192)
	def(&c.PositiveMaxTTL, 24*time.Hour)
	def(&c.NegativeMaxTTL, 3*time.Hour)
	def(&c.FailureTTL, 5*time.Second)
	def(&c.MaxQueries, 512)
	def(&c.HostsFile, "/etc/hosts")
	if c.Dial == nil {
		c.Dial = dialServer
	}
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// check finds what makes no sense.
func (c *StubConfig) check() error {
	if n := len(c.Servers); n == 0 || n > 16 {
		return fmt.Errorf("dns: %d name servers, want 1 to 16", n)
	}
	for _, s := range c.Servers {
		if !s.Addr.IsValid() || s.Addr.Port() == 0 {
			return fmt.Errorf("dns: name server %q needs an address and a port", s.Addr)
		}
	}
	for _, v := range []struct {
		name      string
		v, lo, hi int64
	}{
		{"ndots", int64(c.Ndots), 0, 15},
		{"attempts", int64(c.Attempts), 1, 16},
		{"num_concurrent_reqs", int64(c.Parallel), 1, 16},
		{"cache_size", int64(c.CacheSize), 1, 1 << 24},
		{"max queries", int64(c.MaxQueries), 1, 1 << 16},
		{"timeout", int64(c.Timeout), int64(time.Millisecond), int64(5 * time.Minute)},
		{"failure TTL", int64(c.FailureTTL), 1, int64(5 * time.Minute)},
		{"positive_min_ttl", int64(c.PositiveMinTTL), 0, int64(c.PositiveMaxTTL)},
		{"negative_min_ttl", int64(c.NegativeMinTTL), 0, int64(c.NegativeMaxTTL)},
	} {
		if v.v < v.lo || v.v > v.hi {
			return fmt.Errorf("dns: %s out of range: %d, want %d to %d", v.name, v.v, v.lo, v.hi)
		}
	}
	return nil
}
