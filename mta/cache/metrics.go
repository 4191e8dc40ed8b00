package cache

// Counter is an instrument that only grows.
type Counter interface{ Add(n int) }

// Gauge is an instrument that goes up and down.
type Gauge interface{ Add(x float64) }

// Metrics are the instruments of one cache, made by [NewMetrics].
type Metrics struct {
	lookup, hit, miss, insert, populated, failed, evict, expire, stale Counter
	size, waiting                                                      Gauge
}

// NewMetrics makes the instruments of metrics.tsv for one cache. The functions are given the name and the help text of
// a family and return its instrument for the label cache_name; with package metric:
//
//	cache.NewMetrics(
//		func(name, help string) cache.Counter { return set.Counter(name, help, "cache_name").With("my_cache") },
//		func(name, help string) cache.Gauge { return set.Gauge(name, help, "cache_name").With("my_cache") })
func NewMetrics(counter func(name, help string) Counter, gauge func(name, help string) Gauge) *Metrics {
	return &Metrics{
		lookup:    counter("lruttl_lookup_count", "Cache lookups started"),
		hit:       counter("lruttl_hit_count", "Cache lookups that found a live item"),
		miss:      counter("lruttl_miss_count", "Cache lookups that found no live item"),
		insert:    counter("lruttl_insert_count", "Items set without a lookup"),
		populated: counter("lruttl_populated_count", "Lookups that ran the populate function"),
		failed:    counter("lruttl_error_count", "Populate functions that returned an error"),
		evict:     counter("lruttl_evict_count", "Items removed because the cache was over its capacity"),
		expire:    counter("lruttl_expire_count", "Items removed because their time had passed"),
		stale:     counter("lruttl_stale_count", "Lookups answered with an expired value for want of a new one"),
		size:      gauge("lruttl_cache_size", "Items in the cache now"),
		waiting:   gauge("lruttl_waiting_populate", "Callers that wait for a populate now"),
	}
}

// The instruments of caches without metrics.
type (
	noCounter struct{}
	noGauge   struct{}
)

func (noCounter) Add(int)   {}
func (noGauge) Add(float64) {}
