package queue

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"example.com/svc/mta"
)

// errorTTL is how long a creation error is answered to everybody (flows SQ-1).
const errorTTL = 60 * time.Second

// shardCount is the number of parts of the map of queues; a power of two.
const shardCount = 64

// registry is the map of queues by name.
type registry struct {
	seed   maphash.Seed
	shards [shardCount]shard
}

type shard struct {
	mu sync.RWMutex
	qs map[string]*place
}

// place is a queue, the making of one, or the error of that.
type place struct {
	done chan struct{} // closed when q or err is set
	q    *scheduled
	err  error
	// until is when err is forgotten, on the manager's clock.
	until int64
}

func newRegistry() *registry {
	r := &registry{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].qs = make(map[string]*place)
	}
	return r
}

func (r *registry) shard(name string) *shard {
	return &r.shards[maphash.String(r.seed, name)%shardCount]
}

// get returns the queue of name with a hold on it, nil when it is not made.
func (s *shard) get(name string) *scheduled {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p := s.qs[name]
	if p == nil || p.q == nil {
		return nil
	}
	p.q.held.Add(1)
	return p.q
}

// claim returns the queue of name with a hold on it, or the place where it is being made or has failed, or a new place
// that the caller has to fill (mine).
func (s *shard) claim(name string, now int64) (q *scheduled, p *place, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.qs[name]; p != nil && (p.err == nil || now < p.until) {
		if p.q != nil {
			p.q.held.Add(1)
		}
		return p.q, p, false
	}
	p = &place{done: make(chan struct{})}
	s.qs[name] = p
	return nil, p, true
}

// fill ends the making of a queue. An error that is only the end of the maker's patience is not kept.
func (s *shard) fill(name string, p *place, q *scheduled, err error, until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.q, p.err, p.until = q, err, until
	switch {
	case q != nil:
		q.held.Add(1)
	case passing(err):
		delete(s.qs, name)
	}
	close(p.done)
}

// each calls fn for every queue, without a lock.
func (r *registry) each(fn func(q *scheduled)) {
	var qs []*scheduled
	for i := range r.shards {
		qs = r.shards[i].list(qs[:0])
		for _, q := range qs {
			fn(q)
		}
	}
}

func (s *shard) list(qs []*scheduled) []*scheduled {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, p := range s.qs {
		if p.q != nil {
			qs = append(qs, p.q)
		}
	}
	return qs
}

func (r *registry) len() int {
	n := 0
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.RLock()
		for _, p := range s.qs {
			if p.q != nil {
				n++
			}
		}
		s.mu.RUnlock()
	}
	return n
}

// reap removes queues that are idle (flows SQ-6) and errors that are over, and returns the queues.
func (r *registry) reap(now int64) []*scheduled {
	var gone []*scheduled
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for name, p := range s.qs {
			switch {
			case p.err != nil && now >= p.until:
				delete(s.qs, name)
			case p.q != nil && p.q.idle(now):
				delete(s.qs, name)
				gone = append(gone, p.q)
			}
		}
		s.mu.Unlock()
	}
	return gone
}

// queueText is the text of a name, without an allocation for the most common form.
func queueText(n mta.QueueName) string {
	if n.Tenant == "" && n.Campaign == "" && n.RoutingDomain == "" {
		return n.Domain
	}
	return n.String()
}

// queueOf returns the queue of msg with a hold on it.
func (m *Manager) queueOf(ctx context.Context, msg *mta.Message) (*scheduled, error) {
	name, err := msg.Queue(ctx)
	if err != nil {
		return nil, err
	}
	return m.resolve(ctx, name)
}

// resolve returns the queue of name with a hold on it, and makes it when there is none (flows SQ-1).
func (m *Manager) resolve(ctx context.Context, name mta.QueueName) (*scheduled, error) {
	text := queueText(name)
	s := m.reg.shard(text)
	if q := s.get(text); q != nil {
		return q, nil
	}
	start := time.Now()
	defer m.ins.resolve.ObserveSince(start)
	for {
		q, p, mine := s.claim(text, m.now())
		if mine {
			q, err := m.create(ctx, text)
			s.fill(text, p, q, err, m.now()+int64(errorTTL))
			return q, err
		}
		if q != nil {
			return q, nil
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if err := p.err; err != nil && !passing(err) {
			return nil, err
		}
	}
}

// passing reports whether err is about the patience of one caller.
func passing(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
