package route

import (
	"time"

	"example.com/svc/mta/dns"
	"example.com/svc/mta/metric"
)

// Config is how a Planner works. Zero values are replaced by the defaults.
type Config struct {
	// Resolver answers; required.
	Resolver dns.Resolver
	// Timeout bounds one MX lookup, and each address lookup; default 5 s (flows
	// SC-6, svc.dns.set_mx_timeout).
	Timeout time.Duration
	// Concurrency bounds the MX lookups that run at one time; default 128 (flows
	// SC-6, svc.dns.set_mx_concurrency_limit).
	Concurrency int
	// NegativeTTL is how long a failure is remembered; default 5 min (flows SC-6,
	// svc.dns.set_mx_negative_cache_ttl).
	NegativeTTL time.Duration
	// CacheSize is the number of domains remembered; default 65536 (cache
	// dns_resolver_mx).
	CacheSize int
	// MaxHosts bounds the hosts of a plan made from MX records; default 32.
	MaxHosts int
	// MaxAddrs bounds what Targets returns; default 64.
	MaxAddrs int
	// Metrics are the instruments to count with; nil counts unseen.
	Metrics *metric.Set
}

func (c *Config) fill() {
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	if c.NegativeTTL <= 0 {
		c.NegativeTTL = 5 * time.Minute
	}
	for _, v := range []struct {
		p   *int
		def int
	}{{&c.Concurrency, 128}, {&c.CacheSize, 65536}, {&c.MaxHosts, 32}, {&c.MaxAddrs, 64}} {
		if *v.p <= 0 {
			*v.p = v.def
		}
	}
}
