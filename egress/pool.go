package egress

import (
	"math"
	"net/netip"

	"example.com/svc/mta/settings"
)

// Unspecified is the name of the built-in pool and of its one source, which binds nothing (flows SS-1).
const Unspecified = "unspecified"

// Pool is a set of sources to send from: the settings of make_egress_pool.
type Pool struct {
	// Name is how queue configs name the pool.
	Name string `set:"name" required:"true"`
	// Entries are its sources, in order.
	Entries []PoolEntry `set:"entries" required:"true"`
	// TTL is how long the definition is kept.
	TTL settings.Duration `set:"ttl" default:"60s"`
}

// PoolEntry is one source of a pool.
type PoolEntry struct {
	// Name is the name of the source.
	Name string `set:"name" required:"true"`
	// Weight is its share of the messages; 0 leaves it out.
	Weight int `set:"weight" default:"1"`
}

// maxPool bounds the entries of a pool.
const maxPool = 1 << 16

// Validate checks names and weights.
func (p *Pool) Validate() error {
	if p.Name == "" {
		return settings.Fault("name", "must not be empty")
	}
	if len(p.Entries) > maxPool {
		return settings.Fault("entries", "more than %d sources", maxPool)
	}
	for _, e := range p.Entries {
		if e.Name == "" {
			return settings.Fault("entries", "a source without a name")
		}
		if e.Weight < 0 || e.Weight > math.MaxInt32 {
			return settings.Fault("entries", "the weight of %q is out of range: %d", e.Name, e.Weight)
		}
	}
	return nil
}

// Source is a place to send from: the settings of make_egress_source.
type Source struct {
	// Name is how pools, logs and metrics name the source.
	Name string `set:"name" required:"true"`
	// SourceAddress is the local address to bind; unset lets the kernel choose.
	SourceAddress *netip.Addr `set:"source_address"`
	// EHLODomain is the name this host goes by. Empty takes the host name.
	EHLODomain string `set:"ehlo_domain"`
	// RemotePort is the port to connect to; it beats that of the plan and smtp_port.
	RemotePort *uint16 `set:"remote_port"`
	// TTL is how long the definition is kept.
	TTL settings.Duration `set:"ttl" default:"60s"`
}

// Refused names the settings that are not served.
func (Source) Refused() map[string]string {
	const (
		proxy  = "is not served yet: connections are made without proxies"
		health = "is not served yet: sources are not suspended by their health"
	)
	return map[string]string{
		"ha_proxy_server":              proxy,
		"ha_proxy_source_address":      proxy,
		"socks5_proxy_server":          proxy,
		"socks5_proxy_source_address":  proxy,
		"socks5_proxy_username":        proxy,
		"socks5_proxy_password":        proxy,
		"suspend_when_proxy_unhealthy": health,
		"suspend_when_unplumbed":       health,
	}
}

// Validate checks name, address and port.
func (s *Source) Validate() error {
	switch {
	case s.Name == "":
		return settings.Fault("name", "must not be empty")
	case s.RemotePort != nil && *s.RemotePort == 0:
		return settings.Fault("remote_port", "must be 1 to 65535")
	case s.SourceAddress != nil && s.SourceAddress.Zone() != "":
		return settings.Fault("source_address", "must not have a zone")
	}
	return nil
}

// address returns the address to bind, the zero Addr when there is none.
func (s *Source) address() netip.Addr {
	if s.SourceAddress == nil {
		return netip.Addr{}
	}
	return *s.SourceAddress
}
