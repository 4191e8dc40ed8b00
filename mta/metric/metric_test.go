package metric

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func text(t *testing.T, s *Set, prefix string) string {
	t.Helper()
	var b bytes.Buffer
	if err := s.WritePrometheus(&b, prefix); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func example() *Set {
	s := NewSet()
	s.Counter("b_total", `back\slash and`+"\n"+`"quote"`).With().Add(41)
	c := s.Counter("c_total", "by pool", "provider", "pool")
	c.With("x", `a"b\c`+"\n").Inc()
	c.With("a", "z").Add(1 << 30)
	s.Gauge("d_now", "one label", "service").With("smtp_client:q").Set(-1.5)
	s.Gauge("e_none", "nothing yet", "service")
	h := s.Histogram("f_latency", "times", []float64{0.5, 1, 2}, "op")
	for _, x := range []float64{0.1, 0.5, 0.7, 2, 99} {
		h.With("put").Observe(x)
	}
	s.GaugeFunc("a_inf", "function", func() float64 { return math.Inf(1) })
	s.Func("g_fn", "emitted", KindCounter, []string{"path"}, func(emit func([]string, float64)) {
		emit([]string{"/b"}, 2)
		emit([]string{"/a"}, 1)
		emit([]string{"/b"}, 3)
	})
	return s
}

func TestPrometheusText(t *testing.T) {
	want := `# HELP x_a_inf function
# TYPE x_a_inf gauge
x_a_inf +Inf
# HELP x_b_total back\\slash and\n"quote"
# TYPE x_b_total counter
x_b_total 41
# HELP x_c_total by pool
# TYPE x_c_total counter
x_c_total{provider="a",pool="z"} 1073741824
x_c_total{provider="x",pool="a\"b\\c\n"} 1
# HELP x_d_now one label
# TYPE x_d_now gauge
x_d_now{service="smtp_client:q"} -1.5
# HELP x_e_none nothing yet
# TYPE x_e_none gauge
# HELP x_f_latency times
# TYPE x_f_latency histogram
x_f_latency_bucket{op="put",le="0.5"} 2
x_f_latency_bucket{op="put",le="1"} 3
x_f_latency_bucket{op="put",le="2"} 4
x_f_latency_bucket{op="put",le="+Inf"} 5
x_f_latency_sum{op="put"} 102.3
x_f_latency_count{op="put"} 5
# HELP x_g_fn emitted
# TYPE x_g_fn counter
x_g_fn{path="/a"} 1
x_g_fn{path="/b"} 2
`
	if got := text(t, example(), "x_"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJSON(t *testing.T) {
	s := example()
	s.Histogram("h_latency", "no label", nil)
	var b bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]struct {
		Type, Help string
		Value      any
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, b.Bytes())
	}
	values := map[string]string{
		"a_inf":   `null`,
		"b_total": `41`,
		"c_total": `[{"provider":"a","pool":"z","@":1073741824},{"provider":"x","pool":"a\"b\\c\n","@":1}]`,
		"d_now":   `{"service":{"smtp_client:q":-1.5}}`,
		"e_none":  `null`,
		"f_latency": `{"op":{"put":{"count":5,"sum":102.3,"avg":20.46,
			"bucket":[[0.5,2],[1,3],[2,4]]}}}`,
		"g_fn": `{"path":{"/a":1,"/b":2}}`,
		"h_latency": `{"count":0,"sum":0,"avg":0,"bucket":[[0.005,0],[0.01,0],[0.025,0],[0.05,0],[0.1,0],[0.25,0],
			[0.5,0],[1,0],[2.5,0],[5,0],[10,0]]}`,
	}
	if len(got) != len(values) {
		t.Errorf("%d families, want %d", len(got), len(values))
	}
	for name, v := range values {
		var want any
		if err := json.Unmarshal([]byte(v), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got[name].Value, want) {
			t.Errorf("%s: got %v, want %v", name, got[name].Value, want)
		}
	}
	if got["f_latency"].Type != "histogram" || got["d_now"].Help != "one label" {
		t.Errorf("type or help is wrong: %+v", got["f_latency"])
	}
}

func TestPrefixFromOutside(t *testing.T) {
	for _, p := range []string{"a b", "1x", "x\n", "x{", "é"} {
		var b bytes.Buffer
		if err := example().WritePrometheus(&b, p); !errors.Is(err, ErrPrefix) || b.Len() != 0 {
			t.Errorf("prefix %q: error %v, %d bytes", p, err, b.Len())
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestWriterErrorIsReturned(t *testing.T) {
	s := example()
	for i := range 2000 {
		s.Counter("many", "many", "n").With(fmt.Sprint("value-", i)).Inc()
	}
	if s.WritePrometheus(failing{}, "") == nil || s.WriteJSON(failing{}) == nil {
		t.Error("the error of the writer is lost")
	}
}

func TestNilSetAndNilHandles(t *testing.T) {
	var s *Set
	c := s.Counter("n", "n", "l").With("v")
	c.Inc()
	c.Add(2)
	c.Add(-5)
	if c.Value() != 3 {
		t.Errorf("counter of a nil set holds %d, want 3", c.Value())
	}
	h := s.Histogram("h", "h", nil).With()
	h.ObserveDuration(1500 * time.Millisecond)
	h.Observe(math.NaN())
	if h.Count() != 1 || h.Sum() != 1.5 {
		t.Errorf("histogram of a nil set: %d, %v", h.Count(), h.Sum())
	}
	s.GaugeFunc("f", "f", func() float64 { return 1 })
	if got := text(t, s, ""); got != "" || s.Describe() != nil {
		t.Errorf("a nil set exposes %q", got)
	}
	var nc *CounterValue
	var ng *GaugeValue
	var nh *HistogramValue
	nc.Inc()
	ng.Dec()
	nh.ObserveSince(time.Now())
	if nc.Value() != 0 || ng.Value() != 0 || nh.Count() != 0 {
		t.Error("nil handles hold values")
	}
}

func TestDeclaringTwice(t *testing.T) {
	s := NewSet()
	if s.Counter("c", "first", "a") != s.Counter("c", "second", "a") {
		t.Error("the same shape gives two families")
	}
	if s.Histogram("h", "", []float64{1, math.Inf(1)}) != s.Histogram("h", "", []float64{1}) {
		t.Error("+Inf counts as a bucket")
	}
	s.GaugeFunc("f", "", func() float64 { return 1 })
	s.GaugeFunc("f", "", func() float64 { return 2 })
	if !strings.Contains(text(t, s, ""), "\nf 2\n") {
		t.Error("the later function is not asked")
	}
	mistakes := map[string]func(){
		"other labels":        func() { s.Counter("c", "", "b") },
		"other kind":          func() { s.Gauge("c", "", "a") },
		"function over value": func() { s.Func("c", "", KindCounter, []string{"a"}, func(func([]string, float64)) {}) },
		"no function":         func() { s.Func("x", "", KindCounter, nil, nil) },
		"no gauge function":   func() { s.GaugeFunc("x", "", nil) },
		"other buckets":       func() { s.Histogram("h", "", []float64{2}) },
		"no name":             func() { s.Counter("", "") },
		"bad name":            func() { s.Counter("a-b", "") },
		"bad label":           func() { s.Counter("x", "", "a:b") },
		"label le":            func() { s.Gauge("x", "", "le") },
		"label twice":         func() { s.Gauge("x", "", "a", "a") },
		"descending":          func() { s.Histogram("x", "", []float64{2, 1}) },
		"histogram function":  func() { s.Func("x", "", KindHistogram, nil, func(func([]string, float64)) {}) },
	}
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			mistake()
		})
	}
}

func TestWrongNumberOfValues(t *testing.T) {
	s := NewSet()
	c := s.Counter("c", "", "a", "b")
	c.With("x").Inc()
	c.With("x", "").Inc()
	c.With("x", "", "surplus").Inc()
	if got := c.With("x", "").Value(); got != 3 {
		t.Errorf("got %d, want 3", got)
	}
	if !c.Delete("x") || c.Delete("x") {
		t.Error("delete with a wrong number of values")
	}
}

func TestInvalidUTF8IsOneSeries(t *testing.T) {
	s := NewSet()
	c := s.Counter("c", "", "a")
	c.With("\xff").Inc()
	c.With("\xfe").Inc()
	if got := text(t, s, ""); strings.Count(got, "c{") != 1 || !strings.Contains(got, "c{a=\"\uFFFD\"} 2\n") {
		t.Errorf("MT1: got %q", got)
	}
	if !c.Delete("\xfd") {
		t.Error("not deleted")
	}
}

func TestDelete(t *testing.T) {
	s := NewSet()
	g := s.Gauge("g", "", "queue")
	for i := range 100 {
		g.With(fmt.Sprint(i)).Inc()
	}
	kept := g.With("7")
	for i := range 99 {
		if !g.Delete(fmt.Sprint(i)) {
			t.Fatalf("MT-8: %d was not there", i)
		}
	}
	kept.Inc()
	if got := text(t, s, ""); !strings.HasSuffix(got, "gauge\ng{queue=\"99\"} 1\n") {
		t.Errorf("MT3: got %q", got)
	}
	if g.With("7") == kept || g.With("7").Value() != 0 {
		t.Error("a deleted series came back with its value")
	}
	if s.Counter("only", "").Delete() {
		t.Error("the series of a family without labels was deleted")
	}
}

func TestDescribe(t *testing.T) {
	ds := example().Describe()
	if len(ds) != 7 || ds[0].Name != "a_inf" {
		t.Fatalf("got %+v", ds)
	}
	want := Desc{Name: "f_latency", Type: "histogram", Help: "times", Labels: []string{"op"}, Buckets: []float64{0.5, 1, 2}}
	if !reflect.DeepEqual(ds[5], want) {
		t.Errorf("got %+v, want %+v", ds[5], want)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := NewSet()
	c := s.Counter("c", "", "a", "b")
	h := s.Histogram("h", "", nil)
	const workers, each, keys = 8, 2000, 64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				c.With("k", fmt.Sprint(i%keys)).Inc()
				h.With().Observe(float64(i%2) * 100)
				c.With("gone", fmt.Sprint(w)).Inc()
				c.Delete("gone", fmt.Sprint(w))
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			for _, f := range s.sorted() {
				for _, one := range f.collect(nil) {
					if h := one.hist; h != nil && h.cumulative[len(h.cumulative)-1] > h.count {
						t.Error("MT2: a bucket exceeds the count")
					}
				}
			}
		}
	})
	wg.Wait()
	var sum uint64
	for i := range keys {
		sum += c.With("k", fmt.Sprint(i)).Value()
	}
	if sum != workers*each || h.With().Count() != workers*each {
		t.Errorf("counted %d and %d, want %d", sum, h.With().Count(), workers*each)
	}
	if got, want := h.With().Sum(), float64(workers*each/2*100); got != want {
		t.Errorf("sum %v, want %v", got, want)
	}
}

func TestNoAllocations(t *testing.T) {
	s := NewSet()
	c1 := s.Counter("c1", "", "a")
	c2 := s.Counter("c2", "", "a", "b")
	h := s.Histogram("h", "", nil, "a", "b", "c").With("1", "2", "3")
	n := testing.AllocsPerRun(100, func() {
		c1.With("main").Inc()
		c2.With("gmail", "pool-1").Add(2)
		h.Observe(0.2)
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
