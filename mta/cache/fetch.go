package cache

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrTimeout reports that another caller's populate took longer than Options.Timeout.
var ErrTimeout = errors.New("cache: waited too long for the value to be populated")

// Fetch returns the live value of key, or the kept error of an earlier populate. When there is neither, it runs
// populate, or waits for the caller that does. populate returns the value and how long it may be kept; what is not
// positive is not kept. It runs on the goroutine of the caller and with its context; when it fails because that
// context has ended, another waiter populates (C3).
//
// Errors: those of populate; the cause of ctx wrapped, or [ErrTimeout], while waiting for another caller.
func (c *Cache[K, V]) Fetch(ctx context.Context, key K,
	populate func(context.Context) (v V, ttl time.Duration, err error)) (V, error) {
	c.m.lookup.Add(1)
	s, now := c.shard(key), c.now()
	if e := s.get(key); e.live(now) {
		e.used.Store(now)
		c.m.hit.Add(1)
		return e.val, e.err
	}
	c.m.miss.Add(1)
	deadline := time.Now().Add(c.opt.Timeout)
	for {
		e, f, leads := c.board(s, key)
		if leads {
			return c.lead(ctx, s, key, f, populate)
		}
		if e != nil {
			return e.val, e.err
		}
		v, err, answered := c.wait(ctx, s, key, f, deadline)
		if answered {
			return v, err
		}
	}
}

// board returns the live entry that came up meanwhile, or the flight of key: one to wait for, or one to lead.
func (c *Cache[K, V]) board(s *shard[K, V], key K) (e *entry[K, V], f *flight[V], leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[key]; f != nil {
		return nil, f, false
	}
	if e := s.items[key]; e.live(c.now()) {
		return e, nil, false
	}
	f = &flight[V]{done: make(chan struct{}), void: true}
	s.flights[key] = f
	return nil, f, true
}

// lead runs populate and lands the flight, also when populate panics.
func (c *Cache[K, V]) lead(ctx context.Context, s *shard[K, V], key K, f *flight[V],
	populate func(context.Context) (V, time.Duration, error)) (V, error) {
	var ttl time.Duration
	defer func() { c.land(s, key, f, ttl) }()
	c.m.populated.Add(1)
	v, keep, err := populate(ctx)
	f.val, f.err, ttl = v, err, keep
	f.void = err != nil && ctx.Err() != nil
	if err != nil {
		c.m.failed.Add(1)
		ttl = c.opt.ErrorTTL
	}
	return v, err
}

// land keeps the answer, unless the flight was ended from outside (C2), and wakes the waiters.
func (c *Cache[K, V]) land(s *shard[K, V], key K, f *flight[V], ttl time.Duration) {
	s.mu.Lock()
	before := len(s.list)
	var expired, evicted int
	if s.flights[key] == f {
		delete(s.flights, key)
		old := s.items[key]
		switch {
		case f.void:
		case f.err != nil && c.opt.AllowStale && old != nil && old.err == nil:
		case ttl > 0:
			expired, evicted = c.store(s, key, f.val, f.err, ttl)
		case old != nil && s.remove(old):
			expired = 1
		}
	}
	grown := len(s.list) - before
	s.mu.Unlock()
	close(f.done)
	c.count(grown, expired, evicted)
}

// wait returns the answer of the flight, or an expired value in its place; answered is false when somebody else has to
// populate.
func (c *Cache[K, V]) wait(ctx context.Context, s *shard[K, V], key K, f *flight[V],
	deadline time.Time) (v V, err error, answered bool) {
	c.m.waiting.Add(1)
	defer c.m.waiting.Add(-1)
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-f.done:
		if f.void {
			return v, nil, false
		}
		v, err = f.val, f.err
	case <-ctx.Done():
		return v, fmt.Errorf("wait for a value to be populated: %w", context.Cause(ctx)), true
	case <-timer.C:
		err = ErrTimeout
	}
	if err != nil && c.opt.AllowStale {
		if e := s.get(key); e != nil && e.err == nil {
			c.m.stale.Add(1)
			return e.val, nil, true
		}
	}
	return v, err, true
}
