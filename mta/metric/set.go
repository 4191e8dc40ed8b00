package metric

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Kinds of instruments, as in the TYPE lines.
const (
	KindCounter   = "counter"
	KindGauge     = "gauge"
	KindHistogram = "histogram"
)

// Desc describes one family.
type Desc struct {
	// Name is the metric name without prefix.
	Name string
	// Type is [KindCounter], [KindGauge] or [KindHistogram].
	Type string
	// Help says in one sentence what is counted.
	Help string
	// Labels are the label names in order; empty for a family of one series.
	Labels []string
	// Buckets are the upper bounds of a histogram without +Inf; empty for other kinds.
	Buckets []float64
}

// sameShape reports whether two declarations may share one family. The help text is not part of the shape.
func (d *Desc) sameShape(o *Desc) bool {
	return d.Type == o.Type && slices.Equal(d.Labels, o.Labels) && slices.Equal(d.Buckets, o.Buckets)
}

// family is what a set keeps of each instrument.
type family interface {
	desc() *Desc
	// collect appends the series of the family, unsorted.
	collect([]sample) []sample
}

// sample is one series at the time of an exposition.
type sample struct {
	values []string
	num    float64
	hist   *histogramSample // nil for counters and gauges
}

// Set holds the instruments of one MTA. It is safe for concurrent use. A nil set makes instruments that work and are
// not exposed.
type Set struct {
	mu       sync.Mutex
	families map[string]family
}

// NewSet returns an empty set.
func NewSet() *Set {
	return &Set{families: make(map[string]family)}
}

// register returns the family named d.Name, made by fresh when there is none. It panics when the description is no
// legal one or when the name is taken by another shape.
func register[F family](s *Set, d Desc, fresh func(Desc) F) F {
	checkDesc(&d)
	d.Labels = slices.Clone(d.Labels)
	d.Buckets = slices.Clone(d.Buckets)
	if s == nil {
		return fresh(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.families[d.Name]; ok {
		f, ok := old.(F)
		if !ok || !old.desc().sameShape(&d) {
			panic(fmt.Sprintf("metric: %s is declared as %s and again as %s", d.Name, shape(old.desc()), shape(&d)))
		}
		return f
	}
	f := fresh(d)
	s.families[d.Name] = f
	return f
}

func shape(d *Desc) string {
	return fmt.Sprintf("%s{%s}%v", d.Type, strings.Join(d.Labels, ","), d.Buckets)
}

func checkDesc(d *Desc) {
	if !legalName(d.Name, true) {
		panic(fmt.Sprintf("metric: %q is no metric name", d.Name))
	}
	for i, l := range d.Labels {
		if !legalName(l, false) || l == "le" || slices.Contains(d.Labels[:i], l) {
			panic(fmt.Sprintf("metric: %q is no label name for %s", l, d.Name))
		}
	}
	for i, b := range d.Buckets {
		if b != b || i > 0 && b <= d.Buckets[i-1] {
			panic(fmt.Sprintf("metric: buckets of %s do not ascend", d.Name))
		}
	}
}

// legalName reports whether s is a metric name, or without colons a label name, of the Prometheus data model.
func legalName(s string, colons bool) bool {
	for i, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_':
		case '0' <= c && c <= '9' && i > 0:
		case c == ':' && colons:
		default:
			return false
		}
	}
	return s != ""
}

// Describe returns the description of every family, sorted by name. The caller owns the result. Nil for a nil set.
func (s *Set) Describe() []Desc {
	fs := s.sorted()
	if len(fs) == 0 {
		return nil
	}
	ds := make([]Desc, len(fs))
	for i, f := range fs {
		ds[i] = *f.desc()
		ds[i].Labels = slices.Clone(ds[i].Labels)
		ds[i].Buckets = slices.Clone(ds[i].Buckets)
	}
	return ds
}

// sorted returns the families by name.
func (s *Set) sorted() []family {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	fs := make([]family, 0, len(s.families))
	for _, f := range s.families {
		fs = append(fs, f)
	}
	s.mu.Unlock()
	slices.SortFunc(fs, func(a, b family) int { return strings.Compare(a.desc().Name, b.desc().Name) })
	return fs
}
