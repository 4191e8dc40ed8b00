package route

import "example.com/svc/mta/metric"

// metrics are the instruments of a Planner (metrics.tsv, dns_mx_resolve_*).
type metrics struct {
	hit, miss, ok, fail *metric.CounterValue
	inProgress          *metric.GaugeValue
}

func newMetrics(s *metric.Set) *metrics {
	return &metrics{
		hit: s.Counter("dns_mx_resolve_cache_hit",
			"MX resolutions answered from the in-process MX cache").With(),
		miss: s.Counter("dns_mx_resolve_cache_miss",
			"MX resolutions that had to go to the resolver").With(),
		ok: s.Counter("dns_mx_resolve_status_ok",
			"MX resolutions that succeeded").With(),
		fail: s.Counter("dns_mx_resolve_status_fail",
			"MX resolutions that failed").With(),
		inProgress: s.Gauge("dns_mx_resolve_in_progress",
			"MX resolutions running right now").With(),
	}
}
