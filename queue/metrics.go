package queue

import "example.com/svc/mta/metric"

// instruments are what a manager counts (metrics.tsv, flows MT-7).
type instruments struct {
	insert, resolve                                *metric.HistogramValue
	popInterval, popLatency, popLate, reinsertLate *metric.HistogramValue
	maint                                          *metric.CounterValue
	byRate, byThrottle, byFull                     *metric.Counter
}

func newInstruments(s *metric.Set) *instruments {
	return &instruments{
		insert: s.Histogram("queue_insert_latency",
			"Time to insert a message via the queue manager", metric.LatencyBuckets).With(),
		resolve: s.Histogram("queue_resolve_latency",
			"Time to resolve a scheduled queue by name", metric.LatencyBuckets).With(),
		popInterval: s.Histogram("timeq_pop_interval", "Time between successive pops of the shared timer wheel",
			[]float64{3, 4, 5, 8, 10, 12, 15, 20, 25, 30}).With(),
		popLatency: s.Histogram("timeq_pop_latency", "Time one shared timer-wheel pop takes",
			metric.LatencyBuckets).With(),
		popLate: s.Histogram("timeq_pop_tardiness", "How late past due an item was when popped from the shared wheel",
			[]float64{0.25, 0.5, 1, 2.5, 3, 5, 10, 15}).With(),
		reinsertLate: s.Histogram("timeq_reinsert_tardiness",
			"How late past due an item was when put back into the shared wheel",
			[]float64{0.25, 0.5, 1, 2.5, 3, 5, 10, 15, 30, 45, 60, 90, 180, 360, 720}).With(),
		maint: s.Counter("total_qmaint_runs", "Scheduled queue maintainer runs").With(),
		byRate: s.Counter("delayed_due_to_message_rate_throttle",
			"Messages sent back to their scheduled queue because a max_message_rate was exhausted", "queue"),
		byThrottle: s.Counter("delayed_due_to_throttle_insert_ready",
			"Messages delayed by a throttle_insert_ready_queue handler", "queue"),
		byFull: s.Counter("delayed_due_to_ready_queue_full",
			"Messages sent back to their scheduled queue because the ready queue had no room", "queue"),
	}
}

// expose declares the gauges that are computed when somebody asks, so that they cost the hot path nothing.
func (m *Manager) expose(s *metric.Set) {
	if s == nil {
		return
	}
	sum := func(name, help string, key func(q *scheduled) []string, labels ...string) {
		s.Func(name, help, metric.KindGauge, labels, func(emit func([]string, float64)) {
			m.emitScheduled(len(labels), key, emit)
		})
	}
	sum("scheduled_count", "Scheduled messages by scheduled queue name",
		func(q *scheduled) []string { return []string{q.text} }, "queue")
	sum("scheduled_by_domain", "Scheduled messages by destination domain",
		func(q *scheduled) []string { return []string{q.name.Domain} }, "domain")
	sum("scheduled_by_tenant", "Scheduled messages by tenant", func(q *scheduled) []string {
		if q.name.Tenant == "" {
			return nil
		}
		return []string{q.name.Tenant}
	}, "tenant")
	sum("scheduled_by_tenant_campaign", "Scheduled messages by tenant and campaign", func(q *scheduled) []string {
		if q.name.Campaign == "" {
			return nil
		}
		return []string{q.name.Tenant, q.name.Campaign}
	}, "tenant", "campaign")
	s.GaugeFunc("scheduled_count_total", "Scheduled messages over all queues",
		func() float64 { return float64(m.scheduled.Load()) })
	s.GaugeFunc("scheduled_queue_count", "Scheduled queues known to the queue manager",
		func() float64 { return float64(m.reg.len()) })
	s.GaugeFunc("scheduled_queue_maintainer_count", "Scheduled queues that have a maintainer task of their own now",
		func() float64 { return float64(m.run.busy()) })
}

// emitScheduled adds the scheduled messages up by label set; each set is emitted once (MT1). A queue without key is left
// out.
func (m *Manager) emitScheduled(labels int, key func(q *scheduled) []string, emit func([]string, float64)) {
	sums := make(map[[2]string]int64)
	m.reg.each(func(q *scheduled) {
		if values := key(q); values != nil {
			var p [2]string
			copy(p[:], values)
			sums[p] += q.scheduled.Load()
		}
	})
	for p, v := range sums {
		emit(p[:labels], float64(v))
	}
}
