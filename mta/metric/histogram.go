package metric

import (
	"math"
	"slices"
	"sync/atomic"
	"time"
)

// LatencyBuckets are the upper bounds, in seconds, of the latency histograms of metrics.tsv. Do not change them.
var LatencyBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// Histogram is a family of distributions over fixed buckets. It is safe for concurrent use.
type Histogram struct {
	vec[HistogramValue]
}

// HistogramValue is one distribution. It is safe for concurrent use; its operations are atomic and do not allocate. A
// nil HistogramValue discards.
type HistogramValue struct {
	bounds []float64       // shared by the family, never changed
	counts []atomic.Uint64 // one more than bounds; the last is for what exceeds all of them
	sum    atomic.Uint64   // bits of a float64
}

// histogramSample is a distribution at the time of an exposition.
type histogramSample struct {
	bounds     []float64
	cumulative []uint64 // by bound
	count      uint64
	sum        float64
}

// Histogram declares a family of histograms with ascending upper bounds, +Inf not included; nil means
// [LatencyBuckets]. It returns the family that has the name when labels and buckets are the same, and panics when the
// name is taken by another shape. Without labels the family has one series.
func (s *Set) Histogram(name, help string, buckets []float64, labels ...string) *Histogram {
	if buckets == nil {
		buckets = LatencyBuckets
	}
	if n := len(buckets); n > 0 && math.IsInf(buckets[n-1], 1) {
		buckets = buckets[:n-1]
	}
	d := Desc{Name: name, Type: KindHistogram, Help: help, Labels: labels, Buckets: buckets}
	return register(s, d, func(d Desc) *Histogram {
		return &Histogram{newVec(d, func() *HistogramValue {
			return &HistogramValue{bounds: d.Buckets, counts: make([]atomic.Uint64, len(d.Buckets)+1)}
		})}
	})
}

// With returns the histogram of a label set and makes it when there is none. See [Counter.With].
func (h *Histogram) With(values ...string) *HistogramValue { return h.with(values) }

// Delete removes the series of a label set and reports whether it was there. See [Counter.Delete].
func (h *Histogram) Delete(values ...string) bool { return h.remove(values) }

func (h *Histogram) collect(to []sample) []sample {
	h.each(func(values []string, v *HistogramValue) {
		to = append(to, sample{values: values, hist: v.sample()})
	})
	return to
}

// Observe counts one value, in the unit of the family, for latencies seconds. NaN is ignored.
func (v *HistogramValue) Observe(x float64) {
	if v == nil || x != x {
		return
	}
	v.counts[v.bucket(x)].Add(1)
	for {
		old := v.sum.Load()
		if v.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+x)) {
			return
		}
	}
}

// bucket returns the index of the first bound that is not below x.
func (v *HistogramValue) bucket(x float64) int {
	if len(v.bounds) > 32 {
		i, _ := slices.BinarySearch(v.bounds, x)
		return i
	}
	for i, b := range v.bounds { // most latencies are small, so this ends early
		if x <= b {
			return i
		}
	}
	return len(v.bounds)
}

// ObserveDuration counts one duration, in seconds.
func (v *HistogramValue) ObserveDuration(d time.Duration) { v.Observe(d.Seconds()) }

// ObserveSince counts the time that has passed since t, in seconds.
func (v *HistogramValue) ObserveSince(t time.Time) {
	if v != nil {
		v.Observe(time.Since(t).Seconds())
	}
}

// Count returns how many values were observed; 0 for nil.
func (v *HistogramValue) Count() uint64 {
	if v == nil {
		return 0
	}
	var n uint64
	for i := range v.counts {
		n += v.counts[i].Load()
	}
	return n
}

// Sum returns the sum of what was observed; 0 for nil.
func (v *HistogramValue) Sum() float64 {
	if v == nil {
		return 0
	}
	return math.Float64frombits(v.sum.Load())
}

// sample reads each bucket once and derives the count from them, so that the two agree (MT2).
func (v *HistogramValue) sample() *histogramSample {
	s := &histogramSample{bounds: v.bounds, cumulative: make([]uint64, len(v.bounds)), sum: v.Sum()}
	for i := range v.counts {
		s.count += v.counts[i].Load()
		if i < len(s.cumulative) {
			s.cumulative[i] = s.count
		}
	}
	return s
}
