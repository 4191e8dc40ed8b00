package metric

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// funcFamily is a family whose values are asked for at each exposition.
type funcFamily struct {
	d  Desc
	fn atomic.Pointer[func(emit func(values []string, v float64))]
}

// GaugeFunc declares a gauge whose value is what fn returns when the set is written. fn runs on the goroutine of the
// writer, on several at once; it must not block. Declaring the name again makes the later fn the one that is asked.
// It panics when the name is taken by another shape.
func (s *Set) GaugeFunc(name, help string, fn func() float64) {
	if fn == nil {
		panic("metric: " + name + " has no function")
	}
	s.Func(name, help, KindGauge, nil, func(emit func([]string, float64)) { emit(nil, fn()) })
}

// Func declares a family of [KindCounter] or [KindGauge] whose series fn emits when the set is written. fn runs on the
// goroutine of the writer, on several at once; it must not block. It emits each label set once, with the values in the
// order of labels; of a label set emitted twice the first counts (MT1). Declaring the name again makes the later fn the
// one that is asked. It panics when the name is taken by another shape, when kind is another one, and when fn is
// nil.
func (s *Set) Func(name, help, kind string, labels []string, fn func(emit func(values []string, v float64))) {
	if kind != KindCounter && kind != KindGauge || fn == nil {
		panic(fmt.Sprintf("metric: %s cannot be a function of kind %q", name, kind))
	}
	d := Desc{Name: name, Type: kind, Help: help, Labels: labels}
	f := register(s, d, func(d Desc) *funcFamily { return &funcFamily{d: d} })
	f.fn.Store(&fn)
}

func (f *funcFamily) desc() *Desc { return &f.d }

func (f *funcFamily) collect(to []sample) []sample {
	fn := f.fn.Load()
	if fn == nil {
		return to
	}
	(*fn)(func(values []string, v float64) {
		own := make([]string, len(f.d.Labels))
		copy(own, values)
		if valid := validValues(own); valid != nil {
			own = valid
		}
		to = append(to, sample{values: own, num: v})
	})
	slices.SortStableFunc(to, func(a, b sample) int { return slices.Compare(a.values, b.values) })
	return slices.CompactFunc(to, func(a, b sample) bool { return slices.Equal(a.values, b.values) })
}
