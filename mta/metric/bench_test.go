package metric

import (
	"fmt"
	"io"
	"testing"
)

func BenchmarkCounterInc(b *testing.B) {
	c := NewSet().Counter("c", "").With()
	b.ReportAllocs()
	for b.Loop() {
		c.Inc()
	}
}

func BenchmarkGaugeAdd(b *testing.B) {
	g := NewSet().Gauge("g", "").With()
	b.ReportAllocs()
	for b.Loop() {
		g.Inc()
	}
}

func BenchmarkObserve(b *testing.B) {
	h := NewSet().Histogram("h", "", nil).With()
	b.ReportAllocs()
	for b.Loop() {
		h.Observe(0.03)
	}
}

func BenchmarkWith(b *testing.B) {
	labels := []string{"provider", "source", "pool"}
	for n := 1; n <= 3; n++ {
		c := NewSet().Counter("c", "", labels[:n]...)
		for i := range 1000 {
			c.With([]string{fmt.Sprint("value-", i), "ip-7", "main"}[:n]...)
		}
		values := []string{"value-500", "ip-7", "main"}[:n]
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.With(values...).Inc()
			}
		})
	}
}

func BenchmarkWritePrometheus10k(b *testing.B) {
	s := NewSet()
	c := s.Counter("c_total", "many", "service")
	for i := range 10000 {
		c.With(fmt.Sprint("smtp_client:queue-", i)).Inc()
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := s.WritePrometheus(io.Discard, ""); err != nil {
			b.Fatal(err)
		}
	}
}
