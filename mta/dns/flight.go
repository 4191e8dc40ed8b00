package dns

import (
	"context"
	"time"
)

// maxLookup bounds a whole lookup, with all its servers, attempts and aliases.
const maxLookup = time.Minute

// call is a lookup in flight. waiters is protected by Stub.mu; ans and err are
// set before done is closed.
type call struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int
	ans     Answer
	err     *Error
}

// join waits for the lookup of k in flight, starting it if there is none. When
// ctx ends the caller leaves; the last one to leave ends the lookup (D2, D3).
func (s *Stub) join(ctx context.Context, k key) (Answer, error) {
	if err := ctx.Err(); err != nil {
		return Answer{}, contextError(k.name, k.qtype, err)
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return Answer{}, &Error{Name: k.name, Type: k.qtype, Kind: Canceled, Err: errClosed}
	}
	c := s.calls[k]
	if c == nil {
		c = &call{done: make(chan struct{})}
		var cctx context.Context
		cctx, c.cancel = context.WithTimeout(s.base, max(maxLookup, time.Duration(s.cfg.Attempts)*s.cfg.Timeout))
		s.calls[k] = c
		s.wg.Add(1)
		go s.fly(cctx, k, c)
	}
	c.waiters++
	s.mu.Unlock()

	select {
	case <-c.done:
		if c.err != nil {
			return Answer{}, c.err
		}
		return c.ans, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	c.waiters--
	if c.waiters == 0 {
		c.cancel()
		s.forget(k, c)
	}
	s.mu.Unlock()
	return Answer{}, contextError(k.name, k.qtype, ctx.Err())
}

// fly does the lookup for all who wait.
func (s *Stub) fly(ctx context.Context, k key, c *call) {
	defer s.wg.Done()
	defer c.cancel()
	c.ans, c.err = s.resolve(ctx, k)
	if ctx.Err() == nil {
		s.cache.put(k, c.ans, c.err)
	}
	s.mu.Lock()
	s.forget(k, c)
	s.mu.Unlock()
	close(c.done)
}

// forget takes c out of the list, unless another call has its place.
func (s *Stub) forget(k key, c *call) {
	if s.calls[k] == c {
		delete(s.calls, k)
	}
}
