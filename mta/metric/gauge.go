package metric

import "github.com/VictoriaMetrics/metrics"

// Gauge is a family of values that go up and down. It is safe for concurrent use.
type Gauge struct {
	vec[GaugeValue]
}

// GaugeValue is one gauge. It is safe for concurrent use; its operations are atomic and do not allocate. A nil
// GaugeValue discards.
type GaugeValue struct {
	g metrics.Gauge
}

// Gauge declares a family of gauges, or returns the one that has the name and the same labels. Without labels the
// family has one series that starts at 0. It panics when the name is taken by another shape.
func (s *Set) Gauge(name, help string, labels ...string) *Gauge {
	d := Desc{Name: name, Type: KindGauge, Help: help, Labels: labels}
	return register(s, d, func(d Desc) *Gauge {
		return &Gauge{newVec(d, func() *GaugeValue { return new(GaugeValue) })}
	})
}

// With returns the gauge of a label set and makes it, at 0, when there is none. See [Counter.With].
func (g *Gauge) With(values ...string) *GaugeValue { return g.with(values) }

// Delete removes the series of a label set and reports whether it was there. See [Counter.Delete].
func (g *Gauge) Delete(values ...string) bool { return g.remove(values) }

func (g *Gauge) collect(to []sample) []sample {
	g.each(func(values []string, v *GaugeValue) {
		to = append(to, sample{values: values, num: v.Value()})
	})
	return to
}

// Set makes x the value.
func (v *GaugeValue) Set(x float64) {
	if v != nil {
		v.g.Set(x)
	}
}

// Add adds x, which may be negative.
func (v *GaugeValue) Add(x float64) {
	if v != nil {
		v.g.Add(x)
	}
}

// Inc adds 1.
func (v *GaugeValue) Inc() { v.Add(1) }

// Dec subtracts 1.
func (v *GaugeValue) Dec() { v.Add(-1) }

// Value returns the value; 0 for nil.
func (v *GaugeValue) Value() float64 {
	if v == nil {
		return 0
	}
	return v.g.Get()
}
