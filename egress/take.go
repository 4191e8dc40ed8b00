package egress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/svc/egress/route"
	"example.com/svc/mta"
	"example.com/svc/mta/limit"
	"example.com/svc/queue"
)

// selector is what the manager remembers about one scheduled queue: its place in the round robin (flows SS-3), its plan
// and the ready queues it feeds.
type selector struct {
	mu     sync.Mutex // held while a ticket of the queue is placed; taken first
	turn   roundRobin
	pool   *poolDef
	plan   *route.Plan
	config *queue.Config // the plan was made for
	queues []*ready      // by place in the pool; nil where not yet known
	open   []int         // scratch: candidates that are left
}

// failedResolve is the refusal of a message whose way cannot be found out (flows SQ-18).
func failedResolve(t *queue.Ticket, err error) error {
	return &queue.Unroutable{Response: mta.Internal(451, mta.EnhancedCode{Class: 4, Subject: 4, Detail: 4},
		fmt.Sprintf("failed to resolve queue %s: %s", t.Queue, safeText(err.Error())))}
}

// Take accepts the message behind t for one of the sources of its pool, or refuses: with a [*queue.Busy] when all ready
// queues are full or shutdown began, with a [*queue.Unroutable] when no source may be chosen or its way cannot be found
// out. See [queue.Outlet].
func (m *Manager) Take(ctx context.Context, t *queue.Ticket) error {
	start := time.Now()
	if m.stop.Err() != nil {
		return &queue.Busy{Context: contextShutdown, HasDelay: true}
	}
	s, ok := t.Selector.Load().(*selector)
	if !ok {
		s, ok = t.Selector.LoadOrStore(func() any { return new(selector) }).(*selector)
		if !ok {
			return errors.New("egress: the slot of the queue is in use by another outlet")
		}
	}
	s.mu.Lock() // one goroutine per queue at a time takes, so nobody waits here
	defer s.mu.Unlock()
	if err := m.prepare(ctx, s, t, start); err != nil {
		return failedResolve(t, err)
	}
	err := m.place(ctx, s, t, start)
	if err == nil {
		m.metrics.insertLatency.ObserveSince(start)
	}
	return err
}

// prepare brings pool and plan up to date.
func (m *Manager) prepare(ctx context.Context, s *selector, t *queue.Ticket, now time.Time) error {
	pool, err := m.catalog.pool(ctx, t.Config.EgressPool, now)
	if err != nil {
		return err
	}
	if pool != s.pool {
		if s.pool == nil || !s.pool.same(pool) {
			s.turn = roundRobin{} // flows SS-4
		}
		s.pool = pool
		s.queues = make([]*ready, len(pool.sources))
		s.open = make([]int, 0, len(pool.sources))
	}
	if s.plan != nil && s.config == t.Config && now.Before(s.plan.Expires) {
		return nil
	}
	plan, err := m.planFor(ctx, t)
	if err != nil {
		return err
	}
	if s.plan == nil || s.plan.Site != plan.Site {
		clear(s.queues)
	}
	s.plan, s.config = plan, t.Config
	return nil
}

// planFor makes the plan for the queue of t.
func (m *Manager) planFor(ctx context.Context, t *queue.Ticket) (*route.Plan, error) {
	p := t.Config.Protocol.SMTP
	if p == nil {
		return nil, errors.New("the queue has no protocol that is served")
	}
	if len(p.MXList) > 0 {
		entries := make([]route.MXEntry, len(p.MXList))
		for i, h := range p.MXList {
			entries[i] = route.MXEntry(h)
		}
		return m.o.Planner.PlanList(entries), nil
	}
	return m.o.Planner.Plan(ctx, t.Name.Routing())
}

// place puts t into the ready queue of a source (flows SS-5 to SS-7).
func (m *Manager) place(ctx context.Context, s *selector, t *queue.Ticket, now time.Time) error {
	s.open = s.open[:0]
	for i := range s.pool.sources {
		s.open = append(s.open, i)
	}
	var anyFull, anySlow bool
	for {
		at := s.turn.pick(s.pool.weights, s.open)
		if at < 0 {
			break
		}
		v, slow, err := m.tryPlace(ctx, s, s.open[at], t, now)
		switch {
		case err != nil:
			return failedResolve(t, err)
		case v == inserted && !slow:
			return nil
		case v == ending:
			return &queue.Busy{Context: contextShutdown, HasDelay: true}
		}
		anyFull = anyFull || v == full
		anySlow = anySlow || slow
		s.open = append(s.open[:at], s.open[at+1:]...)
	}
	switch {
	case anyFull:
		return &queue.Busy{Context: queue.ReadyQueueWasFull}
	case anySlow:
		return noSource(t, "no sources for %s are eligible for selection at this time")
	}
	return noSource(t, "no sources available for %s")
}

func noSource(t *queue.Ticket, format string) error {
	return &queue.Unroutable{Response: mta.Internal(451, mta.EnhancedCode{Class: 4, Subject: 4, Detail: 4},
		fmt.Sprintf(format, t.Queue))}
}

// tryPlace tries one source. slow says that its selection rate was exceeded.
func (m *Manager) tryPlace(ctx context.Context, s *selector, i int, t *queue.Ticket, now time.Time) (v verdict, slow bool, err error) {
	for range 3 { // a ready queue may be retired just when it is found
		q := s.queues[i]
		if q == nil {
			if q, err = m.ready(ctx, s.pool.sources[i], s.plan, t, now); err != nil {
				return 0, false, err
			}
			s.queues[i] = q
		}
		if src := s.pool.sources[i]; q.source.Load() != src {
			q.source.Store(src)
		}
		if q.plan.Load() != s.plan {
			q.plan.Store(s.plan)
		}
		m.refresh(ctx, q, t.Name.Routing(), now)
		v, slow, err = m.admit(ctx, q, t, now)
		if v == gone {
			s.queues[i] = nil
			continue
		}
		if v == full {
			q.metrics.full.Inc()
		}
		return v, slow, err
	}
	return 0, false, errors.New("the ready queue was removed again and again")
}

// admit checks the selection rates while a slot is reserved, and inserts.
func (m *Manager) admit(ctx context.Context, q *ready, t *queue.Ticket, now time.Time) (v verdict, slow bool, err error) {
	st := q.state.Load()
	if len(st.choice) == 0 {
		return q.insert(t, now, false), false, nil
	}
	if v := q.reserve(); v != inserted {
		return v, false, nil
	}
	res, _, err := limit.TakeAll(ctx, m.o.Keeper, st.choice)
	if err != nil || res.Throttled {
		q.unreserve()
		return inserted, true, err
	}
	return q.insert(t, now, true), false, nil
}

// ready returns the ready queue for a source and plan, making it when there is none. One caller makes it, the others
// wait.
func (m *Manager) ready(ctx context.Context, src *Source, plan *route.Plan, t *queue.Ticket, now time.Time) (*ready, error) {
	key := readyKey{src.Name, plan.Site, SMTPClient}
	for {
		m.mu.Lock()
		if q := m.queues[key]; q != nil {
			m.mu.Unlock()
			return q, nil
		}
		busy := m.making[key]
		if busy == nil {
			break
		}
		m.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	busy := make(chan struct{})
	m.making[key] = busy
	m.mu.Unlock()
	var q *ready
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		close(busy)
		delete(m.making, key)
		if q != nil {
			q.closed = m.state == stopping
			m.queues[key] = q
		}
	}()
	c, err := m.pathConfig(ctx, key, t.Name.Routing())
	if err != nil {
		return nil, err
	}
	q = m.newReady(key, c, src, plan, now)
	return q, nil
}

func (m *Manager) newReady(key readyKey, c *PathConfig, src *Source, plan *route.Plan, now time.Time) *ready {
	q := &ready{m: m, key: key, name: key.String(), opener: m.o.Openers[key.protocol], lastUse: now,
		dispatchers: make(map[*dispatcher]struct{})}
	q.metrics = m.metrics.serviceOf(key.protocol, q.name)
	q.state.Store(newPathState(c, q.name, key.site, now, m.o.Epoch.Current()))
	q.source.Store(src)
	q.plan.Store(plan)
	return q
}

// pathConfig asks for the config of a ready queue; without an answer it is the default.
func (m *Manager) pathConfig(ctx context.Context, key readyKey, domain string) (*PathConfig, error) {
	c, handled, err := GetPathConfig.Call(ctx, m.o.Bus, PathArgs{RoutingDomain: domain, Source: key.source, Site: key.site})
	if err != nil {
		return nil, fmt.Errorf("path config of %s: %w", key, err)
	}
	if !handled || c == nil {
		return defaultPath(), nil
	}
	return c, nil
}
