package queue

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/svc/mta"
)

// refreshEvery is how often configurations and idle queues are looked at (flows SQ-4).
const refreshEvery = 10 * time.Second

// create makes the queue of a name.
func (m *Manager) create(ctx context.Context, text string) (*scheduled, error) {
	text = strings.Clone(text) // it outlives the message it came from
	q := &scheduled{name: mta.ParseQueueName(text), text: text}
	epoch := m.epoch()
	cfg, err := m.askConfig(ctx, q.name)
	if err != nil {
		return nil, fmt.Errorf("resolve queue %s: %w", text, err)
	}
	q.cfg.Store(cfg)
	q.epoch.Store(epoch)
	q.fetched.Store(m.now())
	q.lastUse.Store(m.now())
	return q, nil
}

// askConfig returns what the queue name obeys: internal queues have settings of their own (flows SQ-3), others are asked
// about; without an answer the defaults count.
func (m *Manager) askConfig(ctx context.Context, name mta.QueueName) (*Config, error) {
	if name.Internal() {
		return internalConfig(name), nil
	}
	cfg, _, err := GetConfig.Call(ctx, m.o.Bus, name)
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		return defaultConfig(), nil
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return cfg, nil
}

func (m *Manager) epoch() uint64 {
	if m.o.Epoch == nil {
		return 0
	}
	return m.o.Epoch.Current()
}

// maintain refreshes configurations and reaps idle queues until ctx ends.
func (m *Manager) maintain(ctx context.Context) {
	var changed <-chan struct{}
	if m.o.Epoch != nil {
		c, cancel := m.o.Epoch.Subscribe()
		defer cancel()
		changed = c
	}
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
			m.reap()
		}
		m.reg.each(func(q *scheduled) {
			if ctx.Err() == nil {
				m.refresh(ctx, q)
			}
		})
	}
}

// refresh asks for the configuration of q again when that is due; a failure keeps the old one (flows SQ-4).
func (m *Manager) refresh(ctx context.Context, q *scheduled) {
	cfg, now, epoch := q.cfg.Load(), m.now(), m.epoch()
	stale := false
	switch {
	case q.name.Internal():
	case cfg.RefreshStrategy == Epoch:
		stale = epoch != q.epoch.Load()
	default:
		stale = now-q.fetched.Load() >= int64(time.Duration(cfg.RefreshInterval))
	}
	if !stale {
		return
	}
	next, err := m.askConfig(ctx, q.name)
	q.fetched.Store(now)
	q.epoch.Store(epoch)
	if err != nil {
		m.log.Error("queue keeps its configuration", "queue", q.text, "err", err)
		return
	}
	if next.Strategy != cfg.Strategy { // SQ-5
		if !q.warned.Swap(true) {
			m.log.Warn("strategy of a live queue cannot change", "queue", q.text,
				"strategy", string(cfg.Strategy), "wanted", string(next.Strategy))
		}
		kept := *next
		kept.Strategy = cfg.Strategy
		next = &kept
	}
	q.cfg.Store(next)
}

// reap removes idle queues with their metrics (flows SQ-6).
func (m *Manager) reap() {
	for _, q := range m.reg.reap(m.now()) {
		m.ins.byRate.Delete(q.text)
		m.ins.byThrottle.Delete(q.text)
		m.ins.byFull.Delete(q.text)
	}
}
