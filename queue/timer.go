package queue

import (
	"context"
	"sync"
	"time"

	"example.com/svc/queue/wheel"
)

// resolution is the tick of the wheel. The spec's 3 s is an upper bound of what nobody can tell from jitter.
const resolution = 100 * time.Millisecond

// popBatch bounds how long the wheel is locked.
const popBatch = 1024

// timer is the wheel of all queues and what wakes its driver.
type timer struct {
	mu    sync.Mutex // guards w and sleep
	w     *wheel.Wheel[slot]
	sleep time.Duration // when the driver wakes by itself; 0 while it is awake
	wake  chan struct{}
}

func newTimer() *timer {
	return &timer{w: wheel.New[slot](resolution), wake: make(chan struct{}, 1)}
}

// insert puts s in for the time at, on the manager's clock.
func (t *timer) insert(s slot, at time.Duration) {
	e := &wheel.Entry[slot]{Value: s}
	t.mu.Lock()
	t.w.Insert(e, at)
	early := t.sleep != 0 && at < t.sleep
	t.mu.Unlock()
	if early {
		select {
		case t.wake <- struct{}{}:
		default: // it is being woken
		}
	}
}

// pop takes what is due.
func (t *timer) pop(now time.Duration, buf []*wheel.Entry[slot]) ([]*wheel.Entry[slot], bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sleep = 0
	return t.w.Pop(now, buf[:0], popBatch)
}

// rest returns how long there is nothing to do.
func (t *timer) rest(now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, ok := t.w.Next()
	if !ok {
		next = now + time.Hour
	}
	t.sleep = max(next, now+1)
	return max(next-now, 0)
}

// drain takes everything out and calls each for it, in batches so that each runs without the lock.
func (t *timer) drain(each func(s slot)) {
	var batch []*wheel.Entry[slot]
	for {
		batch = batch[:0]
		t.mu.Lock()
		t.w.All(func(e *wheel.Entry[slot]) bool {
			t.w.Remove(e)
			batch = append(batch, e)
			return len(batch) < popBatch
		})
		t.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		for _, e := range batch {
			each(e.Value)
		}
	}
}

// drive pops the wheel until ctx ends and makes what is due pending.
func (m *Manager) drive(ctx context.Context) {
	clock := time.NewTimer(time.Hour)
	defer clock.Stop()
	buf := make([]*wheel.Entry[slot], 0, popBatch)
	var last time.Time
	for ctx.Err() == nil {
		start := time.Now()
		var more bool
		now := m.now()
		buf, more = m.timer.pop(time.Duration(now), buf)
		for i, e := range buf {
			m.popped(e.Value, now)
			buf[i] = nil
		}
		if len(buf) > 0 {
			m.ins.popLatency.ObserveSince(start)
			if !last.IsZero() {
				m.ins.popInterval.ObserveDuration(start.Sub(last))
			}
			last = start
		}
		if more {
			continue
		}
		clock.Reset(m.timer.rest(time.Duration(m.now())))
		select {
		case <-clock.C:
		case <-m.timer.wake:
		case <-ctx.Done():
		}
	}
}

// popped makes a message pending whose time has come, or ends a pause.
func (m *Manager) popped(s slot, now int64) {
	if s.it.m == nil {
		m.resume(s.q)
		return
	}
	if s.it.why&whyRate != 0 {
		s.q.rated.Add(-1)
	}
	m.ins.popLate.Observe(m.late(s.it.m.Due()).Seconds())
	s.it.why = whyDue
	m.pend(s.q, s.it)
}

// late returns how far due lies in the past, by the wall clock.
func (m *Manager) late(due time.Time) time.Duration { return max(m.wall().Sub(due), 0) }
