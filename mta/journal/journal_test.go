package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/journal/jsonl"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
	"example.com/svc/spool/memory"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func config(dir string, edit ...func(*Config)) Config {
	c := settings.New(edit...)
	c.LogDir = dir
	return c
}

func open(t *testing.T, o Options) *Journal {
	t.Helper()
	if o.Log == nil {
		o.Log = quiet()
	}
	o.NodeID = testNode
	j, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func record(t *testing.T, j *Journal, m *mta.Message, rs ...mta.Record) {
	t.Helper()
	for i := range rs {
		if err := j.Record(t.Context(), m, &rs[i]); err != nil {
			t.Fatal(err)
		}
	}
}

func closed(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// written returns the records in the segments of dir whose names end in suffix.
func written(t *testing.T, dir, suffix string) []map[string]any {
	t.Helper()
	names, err := jsonl.Segments(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	for _, name := range names {
		if _, fraction, _ := strings.Cut(name, "."); strings.TrimLeft(fraction, "0123456789") != suffix {
			continue
		}
		for line, err := range jsonl.File(filepath.Join(dir, name)) {
			if err != nil {
				t.Fatal(err)
			}
			var v map[string]any
			if err := json.Unmarshal(line, &v); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			got = append(got, v)
		}
	}
	return got
}

func field(rs []map[string]any, name string) []string {
	var vs []string
	for _, r := range rs {
		vs = append(vs, fmt.Sprint(r[name]))
	}
	return vs
}

func message(t *testing.T, data string, meta map[string]any) *mta.Message {
	t.Helper()
	store := mta.NewStore(memory.New(), memory.New(), nil, quiet())
	m := store.New(mta.Envelope{}, []byte(data))
	for k, v := range meta {
		if err := m.SetMeta(t.Context(), k, v); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestRecordToFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	j := open(t, Options{Configs: []Config{config(dir)}})
	r := base(t)
	record(t, j, nil, r)
	closed(t, j)
	got := written(t, dir, "")
	var want map[string]any
	if err := json.Unmarshal([]byte(deliveryText), &want); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if err := j.Record(t.Context(), nil, &r); !errors.Is(err, ErrClosed) {
		t.Errorf("Record after Close: %v", err)
	}
	if err := j.Flush(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Flush after Close: %v", err)
	}
	closed(t, j)
}

func TestNoLoggers(t *testing.T) {
	j := open(t, Options{})
	r := base(t)
	record(t, j, nil, r)
	if err := j.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := j.Run(ctx); err != nil {
		t.Error(err)
	}
}

func TestFlushedWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		j := open(t, Options{Configs: []Config{config(dir)}})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- j.Run(ctx) }()
		record(t, j, nil, base(t))
		time.Sleep(time.Second)
		synctest.Wait()
		if got := written(t, dir, ""); len(got) != 1 {
			t.Errorf("a reader sees %d records after a second", len(got))
		}
		record(t, j, nil, base(t))
		if err := j.Flush(ctx); err != nil || len(written(t, dir, "")) != 2 {
			t.Errorf("after Flush: error %v", err)
		}
		if err := j.Rotate(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
		record(t, j, nil, base(t))
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		names, err := jsonl.Segments(dir)
		if err != nil || len(names) != 2 || len(written(t, dir, "")) != 3 {
			t.Errorf("%d segments, error %v", len(names), err)
		}
	})
}

func TestPerRecord(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	var c Config
	err := settings.Decode("configure_local_logs", map[string]any{
		"log_dir": dir,
		"per_record": map[string]any{
			"Any":       map[string]any{"suffix": ".any"},
			"Delivery":  map[string]any{"log_dir": other},
			"Reception": map[string]any{"enable": false},
			"Bounce":    map[string]any{"suffix": ".b", "segment_header": "{\"head\":1}\n"},
		},
	}, &c)
	if err != nil {
		t.Fatal(err)
	}
	j := open(t, Options{Configs: []Config{c}})
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("3.7: the directory of an entry was made before its first use: %v", err)
	}
	for _, typ := range mta.RecordTypes {
		record(t, j, nil, mta.Record{Type: typ})
	}
	closed(t, j)
	if got := field(written(t, other, ""), "type"); !slices.Equal(got, []string{"Delivery"}) {
		t.Errorf("3.12: own directory holds %q", got)
	}
	if got := field(written(t, dir, ""), "type"); got != nil {
		t.Errorf("3.12: own place holds %q", got)
	}
	if got := written(t, dir, ".b"); len(got) != 2 || got[0]["head"] == nil || got[1]["type"] != "Bounce" {
		t.Errorf("3.15: segment with a header holds %v", got)
	}
	got := field(written(t, dir, ".any"), "type")
	if len(got) != len(mta.RecordTypes)-3 || slices.Contains(got, "Reception") {
		t.Errorf("3.11: Any holds %q", got)
	}
}

func TestConfigFaults(t *testing.T) {
	for want, tree := range map[string]map[string]any{
		`"log_dir" is required`:   {},
		`not served yet`:          {"log_dir": "x", "per_record": map[string]any{"Bounce": map[string]any{"template": "x"}}},
		`did you mean "Delivery"`: {"log_dir": "x", "per_record": map[string]any{"Delivry": map[string]any{}}},
		`unknown setting`:         {"log_dir": "x", "per_record": map[string]any{"Any": map[string]any{"sufix": "x"}}},
		`0 to 21`:                 {"log_dir": "x", "compression_level": int64(22)},
		`"back_pressure"`:         {"log_dir": "x", "back_pressure": int64(0)},
		`"max_file_size"`:         {"log_dir": "x", "max_file_size": int64(0)},
		`"max_segment_duration"`:  {"log_dir": "x", "max_segment_duration": "0s"},
		`invalid name "a*b"`:      {"log_dir": "x", "meta": []any{"a*b"}},
		`invalid name ""`:         {"log_dir": "x", "headers": []any{""}},
		`path separator`:          {"log_dir": "x", "per_record": map[string]any{"Any": map[string]any{"suffix": "/x"}}},
		`different segment_head`:  {"log_dir": "x", "per_record": map[string]any{"Bounce": map[string]any{"segment_header": "h"}}},
	} {
		var c Config
		err := settings.Decode("configure_local_logs", tree, &c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
	c := settings.New[Config]()
	if c.BackPressure != 128000 || c.MaxFileSize != 1000000000 || c.MinFreeSpace.String() != "10%" {
		t.Errorf("defaults are %+v", c)
	}
	if _, err := New(Options{Configs: []Config{{}}}); err == nil {
		t.Error("New takes an empty configuration")
	}
}

func TestSelection(t *testing.T) {
	m := message(t, "Subject: =?utf-8?q?gr=C3=BC=C3=9Fe?=\r\nX-Tag: one\r\nx-tag: two\r\nX-Camp: c\r\nTo: a\r\n b\r\n\r\nX-Tag: body\r\n",
		map[string]any{"tenant": "acme", "x_a": int64(1), "x_b": []any{"l"}, "Tenant2": "no", "reception_protocol": "HTTP"})
	dirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	j := open(t, Options{Configs: []Config{
		config(dirs[0], func(c *Config) { c.Meta, c.Headers = []string{"tenant", "x_*", "none"}, []string{"subject", "x-t*"} }),
		config(dirs[1], func(c *Config) { c.Meta, c.Headers = []string{"TENANT"}, []string{"TO"} }),
		config(dirs[2]),
	}})
	r := base(t)
	r.ReceptionProtocol = ""
	rejection := mta.Record{Type: mta.RejectionRecord}
	record(t, j, m, r, rejection)
	closed(t, j)
	want := []string{
		`{"meta":{"tenant":"acme","x_a":1,"x_b":["l"]},"headers":{"Subject":"grüße","X-Tag":["one","two"]}}`,
		`{"meta":{},"headers":{"To":"a b"}}`,
		`{"meta":{},"headers":{}}`,
	}
	for i, dir := range dirs {
		got := written(t, dir, "")
		if len(got) != 2 {
			t.Fatalf("logger %d has %d records", i, len(got))
		}
		var w map[string]any
		if err := json.Unmarshal([]byte(want[i]), &w); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got[0]["meta"], w["meta"]) || !reflect.DeepEqual(got[0]["headers"], w["headers"]) {
			t.Errorf("4.1, 4.2: logger %d has %v and %v, want %s", i, got[0]["meta"], got[0]["headers"], want[i])
		}
		if got[0]["reception_protocol"] != "HTTP" || got[1]["reception_protocol"] != nil {
			t.Errorf("1: reception_protocol is %v and %v", got[0]["reception_protocol"], got[1]["reception_protocol"])
		}
		if len(got[1]["headers"].(map[string]any)) != 0 {
			t.Errorf("1: headers of a Rejection are %v", got[1]["headers"])
		}
	}
}

// A message whose record in the store is gone still gets its log record.
func TestMessageThatCannotBeLoaded(t *testing.T) {
	data := memory.New()
	store := mta.NewStore(memory.New(), data, nil, quiet())
	m := store.New(mta.Envelope{}, []byte("Subject: x\r\n\r\n"))
	if err := m.ShrinkData(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := data.Delete(t.Context(), m.ID()); err != nil {
		t.Fatal(err)
	}
	var diag bytes.Buffer
	dir := t.TempDir()
	j := open(t, Options{Log: slog.New(slog.NewTextHandler(&diag, nil)),
		Configs: []Config{config(dir, func(c *Config) { c.Headers = []string{"*"} })}})
	record(t, j, m, base(t))
	closed(t, j)
	if got := written(t, dir, ""); len(got) != 1 || !strings.Contains(diag.String(), "without headers") {
		t.Errorf("%d records, diagnostics %q", len(got), diag.String())
	}
}

func TestFilterEvent(t *testing.T) {
	m := message(t, "", nil)
	for _, tc := range []struct {
		name string
		on   func(context.Context, FilterArgs) (bool, error)
		want []string
	}{
		{"true", func(_ context.Context, a FilterArgs) (bool, error) { return a.Message == m, nil }, []string{"Delivery", "Rejection"}},
		{"false", func(context.Context, FilterArgs) (bool, error) { return false, nil }, []string{"Rejection"}},
		{"pass", func(context.Context, FilterArgs) (bool, error) { return true, event.Pass }, []string{"Rejection"}},
		{"error", func(context.Context, FilterArgs) (bool, error) { return true, errors.New("x") }, []string{"Rejection"}},
		{"no handler", nil, []string{"Rejection"}},
	} {
		t.Run("5.1 "+tc.name, func(t *testing.T) {
			bus := new(event.Local)
			if tc.on != nil {
				if err := FilterEvent("my_filter").On(bus, tc.on); err != nil {
					t.Fatal(err)
				}
			}
			dirs := []string{t.TempDir(), t.TempDir()}
			j := open(t, Options{Bus: bus, Configs: []Config{
				config(dirs[0], func(c *Config) { c.FilterEvent = "my_filter" }), config(dirs[1])}})
			record(t, j, m, base(t), mta.Record{Type: mta.RejectionRecord})
			closed(t, j)
			if got := field(written(t, dirs[0], ""), "type"); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if n := len(written(t, dirs[1], "")); n != 2 {
				t.Errorf("3.1: the logger without a filter has %d records", n)
			}
		})
	}
}

func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		set := metric.NewSet()
		j := open(t, Options{Metrics: set, Configs: []Config{config(dir, func(c *Config) { c.BackPressure = 3 })}})
		r := base(t)
		record(t, j, nil, r, r, r)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		full := make(chan error, 1)
		go func() { full <- j.Record(ctx, nil, &r) }()
		synctest.Wait()
		cancel(gone)
		if err := <-full; !errors.Is(err, gone) {
			t.Errorf("3.2: waiting for room gives %v", err)
		}
		go func() { full <- j.Record(t.Context(), nil, &r) }()
		synctest.Wait()
		j.start()
		if err := <-full; err != nil {
			t.Errorf("3.2: %v", err)
		}
		closed(t, j)
		if n := len(written(t, dir, "")); n != 4 {
			t.Errorf("Q2: %d records, want 4", n)
		}
		m := newInstruments(set, dir)
		if m.submitFull.Value() != 2 || m.submitLatency.Count() != 5 {
			t.Errorf("instruments: full %d, latency %d", m.submitFull.Value(), m.submitLatency.Count())
		}
	})
}

// breakDir puts a file in the place of a directory, so that no segment can be opened, and returns the way back.
func breakDir(t *testing.T, dir string) (repair func()) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	}
}

func TestFailingDiskKeepsRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		var diag bytes.Buffer
		set := metric.NewSet()
		j := open(t, Options{Metrics: set, Log: slog.New(slog.NewTextHandler(&diag, nil)),
			Configs: []Config{config(dir, func(c *Config) { c.BackPressure = 5 })}})
		repair := breakDir(t, dir)
		j.start()
		var want []string
		for i := range 5 {
			r := base(t)
			r.Size = i
			record(t, j, nil, r)
			want = append(want, fmt.Sprint(i))
			if i == 0 {
				time.Sleep(1500 * time.Millisecond) // the logger meets the failure
			}
		}
		full := make(chan error, 1)
		for i := 5; i < 7; i++ {
			r := base(t)
			r.Size = i
			go func() { full <- j.Record(t.Context(), nil, &r) }()
			synctest.Wait()
			want = append(want, fmt.Sprint(i))
		}
		time.Sleep(3 * time.Minute)
		repair()
		for range 2 {
			if err := <-full; err != nil {
				t.Error(err)
			}
		}
		closed(t, j)
		if got := field(written(t, dir, ""), "size"); !slices.Equal(got, want) {
			t.Errorf("JL1: got %q, want %q", got, want)
		}
		said := strings.Count(diag.String(), "cannot be written")
		if said < 3 || said > 5 || !strings.Contains(diag.String(), "written again") {
			t.Errorf("%d reports in 3 minutes: %s", said, diag.String())
		}
		if n := newInstruments(set, dir).writeErrors.Value(); n < 100 {
			t.Errorf("log_write_errors is %d", n)
		}
	})
}

func TestFailingDiskAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		j := open(t, Options{Configs: []Config{config(dir)}})
		repair := breakDir(t, dir)
		defer repair()
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- j.Run(ctx) }()
		for range 20 {
			record(t, j, nil, base(t))
		}
		time.Sleep(5 * time.Second)
		begin := time.Now()
		cancel()
		err := <-ran
		if err == nil || !strings.Contains(err.Error(), "20 log records") {
			t.Errorf("JL1: the error of Run is %v", err)
		}
		if took := time.Since(begin); took < closeGrace || took > closeGrace+2*retryInterval {
			t.Errorf("gave up after %s", took)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	j := open(t, Options{Configs: []Config{config(dirs[0], func(c *Config) { c.BackPressure = 10 }), config(dirs[1])}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ran := make(chan error, 1)
	go func() { ran <- j.Run(ctx) }()
	var wg sync.WaitGroup
	accepted := make([]int, 8)
	for w := range accepted {
		wg.Go(func() {
			r := base(t)
			for i := range 500 {
				r.Size = i
				err := j.Record(t.Context(), nil, &r)
				if err == nil {
					accepted[w]++
				} else if !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
				if w == 0 && i == 400 {
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if err := <-ran; err != nil {
		t.Error(err)
	}
	sum := 0
	for _, n := range accepted {
		sum += n
	}
	// A record that the second logger refused may be in the first one.
	if a, b := len(written(t, dirs[0], "")), len(written(t, dirs[1], "")); b != sum || a < sum {
		t.Errorf("Q2: %d accepted, written %d and %d", sum, a, b)
	}
}

func TestGuarded(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Configs: []Config{config(dir)}})
	defer closed(t, j)
	g := j.Guarded()
	if len(g) != 1 || g[0].Dir != dir || g[0].MinFreeSpace.String() != "10%" || g[0].MinFreeInodes.String() != "10%" {
		t.Errorf("3.8: got %+v", g)
	}
}

func BenchmarkRecord(b *testing.B) {
	c := settings.New[Config]()
	c.LogDir, c.Meta = b.TempDir(), []string{"tenant", "x_*"}
	j, err := New(Options{Configs: []Config{c}, Metrics: metric.NewSet(), NodeID: testNode, Log: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	j.start()
	m := mta.NewStore(memory.New(), memory.New(), nil, quiet()).New(mta.Envelope{}, []byte("Subject: x\r\n\r\n"))
	for k, v := range map[string]any{"tenant": "acme", "reception_protocol": "ESMTP", "x_job": int64(17)} {
		if err := m.SetMeta(context.Background(), k, v); err != nil {
			b.Fatal(err)
		}
	}
	r := base(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := j.Record(context.Background(), m, &r); err != nil {
			b.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkEncode(b *testing.B) {
	r := base(b)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = appendRecord(buf[:0], &r, testNode, "ESMTP", r.Time)
	}
}
