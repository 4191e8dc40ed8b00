package script

import "example.com/svc/mta/metric"

// metrics are the instruments of an [Engine] (metrics.tsv).
type metrics struct {
	alive, spare *metric.GaugeValue
	loads        *metric.CounterValue
	started      *metric.Counter
	latency      *metric.Histogram
}

func newMetrics(s *metric.Set) *metrics {
	return &metrics{
		alive:   s.Gauge("lua_count", "Script contexts alive now").With(),
		spare:   s.Gauge("lua_spare_count", "Idle contexts in the reuse pool").With(),
		loads:   s.Counter("lua_load_count", "Times the policy script was loaded into a fresh context").With(),
		started: s.Counter("lua_event_started", "Event callbacks begun, by event name", "event"),
		latency: s.Histogram("lua_event_latency", "Duration of one event callback, by event name",
			metric.LatencyBuckets, "event"),
	}
}
