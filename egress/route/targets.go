package route

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"

	"example.com/svc/mta/dns"
)

// Target is one address to connect to.
type Target struct {
	// Name is the name of the host.
	Name string
	// Addr is its address.
	Addr netip.Addr
	// Port is the port asked for, 0 if none was.
	Port uint16
	// Secure says that DNSSEC vouches for the address.
	Secure bool
}

var (
	// ErrNullMX is the error of Targets for a domain that takes no mail (RFC 7505).
	ErrNullMX = errors.New("route: domain has a null MX")
	// ErrNoAddresses is the error of Targets when no host has an address (flows
	// SC-5). It comes with the *dns.Error of a host, a temporary one if there is any.
	ErrNoAddresses = errors.New("route: MX didn't resolve to any hosts")
)

// hostWorkers is how many hosts of a plan are looked up at the same time.
const hostWorkers = 8

// Targets returns the addresses of the hosts of plan in the order to try:
// level by level of preference, the addresses of a level in random order (flows
// SC-3). Hosts that do not resolve are skipped, an address named twice counts
// once. There is at least one target, or an error.
func (p *Planner) Targets(ctx context.Context, plan *Plan, s dns.Strategy) ([]Target, error) {
	if plan.NullMX {
		return nil, ErrNullMX
	}
	found := p.lookupHosts(ctx, plan, s)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("route: addresses of %s: %w", plan.Site, err)
	}
	type place struct {
		addr netip.Addr
		port uint16
	}
	seen := make(map[place]struct{})
	var out []Target
	for start := 0; start < len(plan.Hosts); {
		level := len(out)
		end := start
		for ; end < len(plan.Hosts) && plan.Hosts[end].Pref == plan.Hosts[start].Pref; end++ {
			h := plan.Hosts[end]
			for _, a := range found[end].res.Addrs {
				pl := place{a, h.Port}
				if _, dup := seen[pl]; !dup {
					seen[pl] = struct{}{}
					out = append(out, Target{Name: h.Name, Addr: a, Port: h.Port, Secure: found[end].res.Secure})
				}
			}
		}
		now := out[level:]
		rand.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
		if len(out) >= p.cfg.MaxAddrs {
			return out[:p.cfg.MaxAddrs], nil
		}
		start = end
	}
	if len(out) == 0 {
		return nil, noAddresses(plan, found)
	}
	return out, nil
}

type hostResult struct {
	res dns.HostResult
	err error
}

// lookupHosts looks up all hosts that have no address yet, some at a time, and
// returns when all are done.
func (p *Planner) lookupHosts(ctx context.Context, plan *Plan, s dns.Strategy) []hostResult {
	found := make([]hostResult, len(plan.Hosts))
	var wg sync.WaitGroup
	slots := make(chan struct{}, hostWorkers)
	for i, h := range plan.Hosts {
		if h.Addr.IsValid() {
			found[i].res.Addrs = []netip.Addr{h.Addr}
			continue
		}
		name := h.Name
		if !plan.relative {
			name += "." // a name out of the DNS is absolute
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			hctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
			defer cancel()
			found[i].res, found[i].err = dns.LookupHost(hctx, p.cfg.Resolver, name, s)
		})
	}
	wg.Wait()
	return found
}

func noAddresses(plan *Plan, found []hostResult) error {
	var cause error
	for _, f := range found {
		if f.err != nil && (cause == nil || dns.IsNotFound(cause) && !dns.IsNotFound(f.err)) {
			cause = f.err
		}
	}
	if cause == nil {
		return fmt.Errorf("%w: %s", ErrNoAddresses, plan.Site)
	}
	return fmt.Errorf("%w: %s: %w", ErrNoAddresses, plan.Site, cause)
}
