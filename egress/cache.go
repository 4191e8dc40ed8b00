package egress

import (
	"context"
	"sync"
	"time"
)

// errorTTL is how long a failed answer is kept (flows SQ-1, SS-9).
const errorTTL = time.Minute

// cache keeps answers of the policy by name, each for its time. One question per name is asked at a time; the others
// wait for its answer. No lock is held while asking (E3).
type cache[V any] struct {
	mu sync.Mutex // guards m and the entries
	m  map[string]*cacheEntry[V]
}

type cacheEntry[V any] struct {
	val     V
	err     error
	expires time.Time
	epoch   uint64 // the configuration an error belongs to
	busy    chan struct{}
}

// get returns what is kept for name, or asks load.
func (c *cache[V]) get(ctx context.Context, name string, now time.Time, epoch uint64,
	load func(ctx context.Context) (V, time.Duration, error)) (V, error) {
	for {
		c.mu.Lock()
		e := c.m[name]
		if e == nil {
			if c.m == nil {
				c.m = make(map[string]*cacheEntry[V])
			}
			e = new(cacheEntry[V])
			c.m[name] = e
		}
		if e.busy == nil {
			if now.Before(e.expires) && (e.err == nil || e.epoch == epoch) {
				v, err := e.val, e.err
				c.mu.Unlock()
				return v, err
			}
			e.busy = make(chan struct{})
			c.mu.Unlock()
			return c.fill(ctx, e, epoch, load)
		}
		busy := e.busy
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			var zero V
			return zero, context.Cause(ctx)
		}
		now = time.Now()
	}
}

// fill asks for all who wait. A failure because the asker gave up is the asker's own.
func (c *cache[V]) fill(ctx context.Context, e *cacheEntry[V], epoch uint64,
	load func(ctx context.Context) (V, time.Duration, error)) (v V, err error) {
	var ttl time.Duration
	answered := false
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(e.busy)
		e.busy = nil
		if !answered || err != nil && ctx.Err() != nil {
			return
		}
		if err != nil {
			ttl = errorTTL
		}
		e.val, e.err, e.epoch, e.expires = v, err, epoch, time.Now().Add(ttl)
	}()
	v, ttl, err = load(ctx)
	answered = true
	return v, err
}

// sweep forgets what expired.
func (c *cache[V]) sweep(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, e := range c.m {
		if e.busy == nil && now.After(e.expires) {
			delete(c.m, name)
		}
	}
}
