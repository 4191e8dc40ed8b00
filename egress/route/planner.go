package route

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"example.com/svc/mta/dns"
)

// Planner makes plans and remembers them. It is safe for use by several
// goroutines, and has none of its own.
type Planner struct {
	cfg   Config
	m     *metrics
	slots chan struct{} // R2

	mu      sync.Mutex // protects the fields below; nothing else is locked under it
	known   lru
	flights map[string]*flight
}

// flight is a lookup in progress. The fields are set before done is closed.
type flight struct {
	done      chan struct{}
	plan      *Plan
	err       error
	abandoned bool // the one who did it gave up; somebody else must begin anew
}

// NewPlanner returns a Planner.
func NewPlanner(c Config) (*Planner, error) {
	if c.Resolver == nil {
		return nil, errors.New("route: a planner needs a resolver")
	}
	c.fill()
	return &Planner{
		cfg:     c,
		m:       newMetrics(c.Metrics),
		slots:   make(chan struct{}, c.Concurrency),
		known:   newLRU(c.CacheSize),
		flights: make(map[string]*flight),
	}, nil
}

// Plan returns where mail for domain goes: a name, an address literal, or one
// of these with ":port". The plan is remembered until it expires and a failure
// for NegativeTTL; lookups for one domain are shared. An error of the DNS is a
// *dns.Error; NXDOMAIN is an error (flows SC-1), a null MX is not.
func (p *Planner) Plan(ctx context.Context, domain string) (*Plan, error) {
	key, port, err := cacheKey(domain)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(key, "[") {
		return p.resolve(ctx, withPort(key, port), port) // nothing is asked
	}
	for {
		p.mu.Lock()
		if e := p.known.get(key, time.Now()); e != nil {
			p.mu.Unlock()
			p.m.hit.Inc()
			return e.plan, e.err
		}
		f := p.flights[key]
		if f == nil {
			f = &flight{done: make(chan struct{}), abandoned: true}
			p.flights[key] = f
			p.mu.Unlock()
			p.m.miss.Inc()
			p.fly(ctx, key, port, f)
			return f.plan, f.err
		}
		p.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, gaveUp(key, ctx.Err())
		}
		if !f.abandoned {
			p.m.hit.Inc()
			return f.plan, f.err
		}
	}
}

// fly does the lookup for all who wait. When ctx ends, the failure is the
// caller's alone, and f stays marked as abandoned.
func (p *Planner) fly(ctx context.Context, key string, port uint16, f *flight) {
	defer close(f.done)
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.flights, key)
		if f.abandoned {
			return
		}
		now := time.Now()
		if f.err != nil {
			p.known.put(key, known{err: f.err, ends: now.Add(p.cfg.NegativeTTL)}) // SC-6
		} else if f.plan.Expires.After(now) {
			p.known.put(key, known{plan: f.plan, ends: f.plan.Expires}) // R1
		}
	}()
	select {
	case p.slots <- struct{}{}: // R2
		defer func() { <-p.slots }()
	case <-ctx.Done():
		f.err = gaveUp(key, ctx.Err())
		return
	}
	p.m.inProgress.Inc()
	defer p.m.inProgress.Dec()
	lctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	f.plan, f.err = p.resolve(lctx, key, port)
	if f.err == nil {
		p.m.ok.Inc()
	} else {
		p.m.fail.Inc()
	}
	f.abandoned = f.err != nil && ctx.Err() != nil
}

// gaveUp is the failure of a caller whose context ended while it waited.
func gaveUp(key string, err error) error {
	k := dns.Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		k = dns.Timeout
	}
	return &dns.Error{Name: key, Type: dns.TypeMX, Kind: k, Err: fmt.Errorf("route: wait for MX lookup: %w", err)}
}

// Forget drops what is known of domain, so that the next Plan asks anew.
func (p *Planner) Forget(domain string) {
	key, _, err := cacheKey(domain)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known.drop(key)
}

// Known returns the number of domains remembered.
func (p *Planner) Known() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.known.m)
}
