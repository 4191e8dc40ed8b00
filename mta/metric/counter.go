package metric

import "github.com/VictoriaMetrics/metrics"

// Counter is a family of values that only grow. It is safe for concurrent use.
type Counter struct {
	vec[CounterValue]
}

// CounterValue is one counter. It is safe for concurrent use; its operations are atomic and do not allocate. A nil
// CounterValue discards.
type CounterValue struct {
	c metrics.Counter
}

// Counter declares a family of counters, or returns the one that has the name and the same labels. Without labels the
// family has one series that starts at 0. It panics when the name is taken by another shape.
func (s *Set) Counter(name, help string, labels ...string) *Counter {
	d := Desc{Name: name, Type: KindCounter, Help: help, Labels: labels}
	return register(s, d, func(d Desc) *Counter {
		return &Counter{newVec(d, func() *CounterValue { return new(CounterValue) })}
	})
}

// With returns the counter of a label set and makes it, at 0, when there is none. Values stand in the order of the
// label names. Missing values are empty and surplus ones are dropped: a wrong count spoils one series, never a
// delivery. A hit takes no lock and does not allocate.
func (c *Counter) With(values ...string) *CounterValue { return c.with(values) }

// Delete removes the series of a label set and reports whether it was there (flows MT-8). Handles of it stay usable
// but are not exposed any more (MT3). A family without labels keeps its series.
func (c *Counter) Delete(values ...string) bool { return c.remove(values) }

func (c *Counter) collect(to []sample) []sample {
	c.each(func(values []string, v *CounterValue) {
		to = append(to, sample{values: values, num: float64(v.Value())})
	})
	return to
}

// Inc adds 1.
func (v *CounterValue) Inc() {
	if v != nil {
		v.c.Inc()
	}
}

// Add adds n. Counters only grow, so a negative n is ignored.
func (v *CounterValue) Add(n int) {
	if v != nil && n > 0 {
		v.c.Add(n)
	}
}

// Value returns the count; 0 for nil.
func (v *CounterValue) Value() uint64 {
	if v == nil {
		return 0
	}
	return v.c.Get()
}
