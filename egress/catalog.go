package egress

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
)

// catalog knows pools and sources: what the policy answered, each kept for its ttl (flows SS-11).
type catalog struct {
	bus     event.Bus
	epoch   *settings.Epoch
	pools   cache[*poolDef]
	sources cache[*Source]
}

// poolDef is a pool with its sources, those of weight 0 left out. It is immutable.
type poolDef struct {
	name    string
	sources []*Source
	weights []int
}

// same reports whether two definitions give the same turns (flows SQ-4).
func (p *poolDef) same(o *poolDef) bool {
	return p.name == o.name && slices.Equal(p.weights, o.weights) &&
		slices.EqualFunc(p.sources, o.sources, func(a, b *Source) bool { return a.Name == b.Name })
}

// builtinSource binds nothing and is never asked for (flows SS-1).
var builtinSource = &Source{Name: Unspecified}

var builtinPool = &poolDef{name: Unspecified, sources: []*Source{builtinSource}, weights: []int{1}}

// pool returns the pool called name with all its sources.
func (c *catalog) pool(ctx context.Context, name string, now time.Time) (*poolDef, error) {
	if name == Unspecified {
		return builtinPool, nil
	}
	return c.pools.get(ctx, name, now, c.epoch.Current(), func(ctx context.Context) (*poolDef, time.Duration, error) {
		return c.loadPool(ctx, name, now)
	})
}

func (c *catalog) loadPool(ctx context.Context, name string, now time.Time) (*poolDef, time.Duration, error) {
	p, handled, err := GetPool.Call(ctx, c.bus, name)
	if err != nil {
		return nil, 0, fmt.Errorf("egress pool %q: %w", name, err)
	}
	if !handled || p == nil {
		return nil, 0, fmt.Errorf("egress pool %q is not defined: no answer to %s", name, GetPool.Name())
	}
	def := &poolDef{name: name}
	ttl := p.TTL.D()
	for _, e := range p.Entries {
		if e.Weight <= 0 {
			continue
		}
		s, err := c.source(ctx, e.Name, now)
		if err != nil {
			return nil, 0, fmt.Errorf("egress pool %q: %w", name, err)
		}
		def.sources = append(def.sources, s)
		def.weights = append(def.weights, e.Weight)
		if s != builtinSource {
			ttl = min(ttl, s.TTL.D()) // the pool holds what it knows of its sources
		}
	}
	return def, ttl, nil
}

// source returns the source called name.
func (c *catalog) source(ctx context.Context, name string, now time.Time) (*Source, error) {
	if name == Unspecified {
		return builtinSource, nil
	}
	return c.sources.get(ctx, name, now, c.epoch.Current(), func(ctx context.Context) (*Source, time.Duration, error) {
		s, handled, err := GetSource.Call(ctx, c.bus, name)
		if err != nil {
			return nil, 0, fmt.Errorf("egress source %q: %w", name, err)
		}
		if !handled || s == nil {
			return nil, 0, fmt.Errorf("egress source %q is not defined: no answer to %s", name, GetSource.Name())
		}
		if s.Name != name {
			return nil, 0, fmt.Errorf("egress source %q: the answer to %s names %q", name, GetSource.Name(), s.Name)
		}
		return s, s.TTL.D(), nil
	})
}

func (c *catalog) sweep(now time.Time) {
	c.pools.sweep(now)
	c.sources.sweep(now)
}
