package cache

import "time"

// Times that are used when the options leave them at zero (flows CA-1).
const (
	DefaultErrorTTL = time.Minute
	DefaultTimeout  = 2 * time.Minute
)

// Options configure a cache.
type Options struct {
	// Capacity is the number of items the cache holds; at least 1.
	Capacity int
	// ErrorTTL is how long an error of a populate function is kept. Zero means [DefaultErrorTTL]; errors are not kept
	// when it is negative.
	ErrorTTL time.Duration
	// Timeout is how long a caller waits for another caller's populate. Zero means [DefaultTimeout].
	Timeout time.Duration
	// AllowStale keeps expired values until they are replaced or evicted. Callers that wait for a new value and run
	// into the timeout or into its error get the expired one (flows CA-5). Errors do not replace values then.
	AllowStale bool
	// Metrics are told what happens; nil for none.
	Metrics *Metrics
}

func (o *Options) fill() {
	o.Capacity = max(o.Capacity, 1)
	if o.ErrorTTL == 0 {
		o.ErrorTTL = DefaultErrorTTL
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(
			func(string, string) Counter { return noCounter{} },
			func(string, string) Gauge { return noGauge{} })
	}
}
