package egress

import (
	"context"
	"time"

	"example.com/svc/queue"
)

const (
	tick     = time.Second      // for ready queues that a limit keeps from opening connections
	fullTick = 10 * time.Second // for all of them (flows RQ-14)
	idleAge  = 10 * time.Minute // after which a ready queue without use is removed (flows RQ-15)
)

// upkeep looks after the ready queues until ctx ends.
func (m *Manager) upkeep(ctx context.Context) {
	t := time.NewTicker(tick)
	defer t.Stop()
	changed, cancel := m.o.Epoch.Subscribe()
	defer cancel()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			m.refreshAll(ctx, time.Now())
		case <-t.C:
			m.attend()
			if now := time.Now(); now.Sub(last) >= fullTick {
				last = now
				m.lookAround(ctx, now)
			}
		}
	}
}

// attend lets limited ready queues try again.
func (m *Manager) attend() {
	m.mu.Lock()
	qs := m.attention
	m.attention = make(map[*ready]struct{}, len(qs))
	m.mu.Unlock()
	for q := range qs {
		q.kick()
	}
}

// lookAround does what is due for any ready queue.
func (m *Manager) lookAround(ctx context.Context, now time.Time) {
	for _, q := range m.list() {
		q.watch(now)
		m.retire(q, now)
	}
	m.catalog.sweep(now)
	m.refreshAll(ctx, now)
}

// refreshAll asks for the configs that grew old of ready queues in use. Others are asked for with their next ticket.
func (m *Manager) refreshAll(ctx context.Context, now time.Time) {
	for _, q := range m.list() {
		q.mu.Lock()
		used := q.waiting.n > 0 || len(q.dispatchers) > 0
		domain := q.domain
		q.mu.Unlock()
		if used && ctx.Err() == nil {
			m.refresh(ctx, q, domain, now)
		}
	}
}

// refresh asks for the config of q when it grew old (flows RQ-14). One caller at a time does; a failure keeps the old
// config until it is old again.
func (m *Manager) refresh(ctx context.Context, q *ready, domain string, now time.Time) {
	st, epoch := q.state.Load(), m.o.Epoch.Current()
	if !st.old(now, epoch) || !q.refreshing.CompareAndSwap(false, true) {
		return
	}
	defer q.refreshing.Store(false)
	c, err := m.pathConfig(ctx, q.key, domain)
	if err != nil {
		m.log.Warn("the path config is kept, since its refresh failed", "queue", q.name, "err", err)
		c = st.c
	}
	q.state.Store(newPathState(c, q.name, q.key.site, now, epoch))
	over := q.drain(c.MaxReady)
	giveBack(m.work, over, queue.Return{Context: queue.MaxReadyWasReducedByConfigUpdate})
	q.kick()
}

// watch gives up sessions without progress (flows RQ-16).
func (q *ready) watch(now time.Time) {
	st := q.state.Load()
	q.mu.Lock()
	defer q.mu.Unlock()
	for d := range q.dispatchers {
		if d.stuck(now, st.c.watchdogTimeout()) && d.abort(errWatchdog) {
			q.metrics.aborted.Inc()
			q.m.log.Warn("session without progress aborted", "queue", q.name, "phase", d.phase().String())
		}
	}
}

// retire removes q when it was without use for long (flows RQ-15).
func (m *Manager) retire(q *ready, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.n > 0 || q.reserved > 0 || q.opening > 0 || len(q.dispatchers) > 0 || now.Sub(q.lastUse) < idleAge {
		return
	}
	q.retired = true
	delete(m.queues, q.key)
	delete(m.attention, q)
	q.metrics.drop()
	for _, p := range q.providers {
		m.metrics.unuse(p.provider, q.key.source, p.pool)
	}
}
