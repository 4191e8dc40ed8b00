package mta

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/svc/mta/metric"
	"example.com/svc/spool"
	"example.com/svc/spool/bolt"
)

// restarted returns a store over the same spools, as the next process has it.
func (r *rig) restarted() *rig {
	r.meta.SetFault(nil)
	r.data.SetFault(nil)
	return &rig{Store: NewStore(r.Meta, r.Data, metric.NewSet(), discard()), meta: r.meta, data: r.data}
}

// recovered returns what Recover enumerates; the messages are released.
func (r *rig) recovered(t *testing.T, start time.Time) (ids []spool.ID, err error) {
	t.Helper()
	for m, err := range r.Recover(t.Context(), start) {
		if err != nil {
			return ids, err
		}
		if m.Size() != 0 || m.Dirty() || !m.Spooled() || m.meta == nil {
			t.Errorf("recovered %+v", m)
		}
		ids = append(ids, m.ID())
		m.Release()
	}
	r.gauges(t, 0, 0, 0)
	return ids, nil
}

func (r *rig) aside(t *testing.T) (meta, data int) {
	t.Helper()
	meta, _ = r.meta.Quarantined(t.Context())
	data, _ = r.data.Quarantined(t.Context())
	return meta, data
}

func stored(t *testing.T, r *rig, n int) (ids []spool.ID) {
	t.Helper()
	ms := r.some(n)
	if err := r.SaveAll(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
	for _, m := range ms {
		ids = append(ids, m.ID())
	}
	return ids
}

func TestRecover(t *testing.T) {
	for _, tc := range []struct {
		name string
		// damage is done to five messages and to another data record; which IDs are expected is the result.
		damage               func(t *testing.T, r *rig, ids []spool.ID) []spool.ID
		asideMeta, asideData int
		left                 int // data records
	}{
		{"SP-3 all, in order", func(_ *testing.T, _ *rig, ids []spool.ID) []spool.ID { return ids }, 0, 0, 5},
		{"M2 orphans of data are removed", func(t *testing.T, r *rig, ids []spool.ID) []spool.ID {
			for _, i := range []int{0, 2, 4} {
				if err := r.meta.Delete(t.Context(), ids[i]); err != nil {
					t.Fatal(err)
				}
			}
			return []spool.ID{ids[1], ids[3]}
		}, 0, 0, 2},
		{"meta without data is set aside", func(t *testing.T, r *rig, ids []spool.ID) []spool.ID {
			if err := errors.Join(r.data.Delete(t.Context(), ids[0]), r.data.Delete(t.Context(), ids[4])); err != nil {
				t.Fatal(err)
			}
			return ids[1:4]
		}, 2, 0, 3},
		{"S3 corrupt meta is set aside with its data", func(_ *testing.T, r *rig, ids []spool.ID) []spool.ID {
			r.meta.Corrupt(ids[2])
			return slices.Delete(slices.Clone(ids), 2, 3)
		}, 1, 1, 4},
		{"flipped meta is set aside with its data", func(t *testing.T, r *rig, ids []spool.ID) []spool.ID {
			b, err := r.meta.Get(t.Context(), ids[2])
			if err != nil {
				t.Fatal(err)
			}
			b[5] ^= 1 // the ID inside
			if err := r.meta.Put(t.Context(), ids[2], b); err != nil {
				t.Fatal(err)
			}
			return slices.Delete(slices.Clone(ids), 2, 3)
		}, 1, 1, 4},
		{"corrupt data are found by who loads them", func(_ *testing.T, r *rig, ids []spool.ID) []spool.ID {
			r.data.Corrupt(ids[2])
			return ids
		}, 0, 0, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			ids := stored(t, r, 5)
			if err := r.data.Put(t.Context(), spool.NewIDs().NextAt(time.Unix(1e9, 0)), nil); err != nil {
				t.Fatal(err)
			}
			want := tc.damage(t, r, ids)
			r = r.restarted()
			for range 2 { // the second time there is nothing left to repair
				got, err := r.recovered(t, time.Now().Add(time.Second))
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("recovered %v, %v; want %v", got, err, want)
				}
				if m, d := r.aside(t); m != tc.asideMeta || d != tc.asideData || r.data.Len() != tc.left {
					t.Errorf("set aside %d meta and %d data, %d data left", m, d, r.data.Len())
				}
			}
			if n := r.metrics.quarantined.Value(); n != uint64(tc.asideMeta) {
				t.Errorf("counted %d", n)
			}
		})
	}
}

func TestRecoverAndStart(t *testing.T) {
	r := newRig(t)
	old := stored(t, r, 2)
	ahead := spool.NewIDs().NextAt(time.Now().AddDate(10, 0, 0))
	b, _ := r.meta.Get(t.Context(), old[0])
	copy(b[1:], ahead[:])
	if err := errors.Join(r.data.Put(t.Context(), ahead, nil), r.meta.Put(t.Context(), ahead, b)); err != nil {
		t.Fatal(err)
	}
	r = r.restarted()
	start := time.Now()
	stored(t, r, 2) // younger
	receiving := r.New(envelope, nil)
	if err := r.data.Put(t.Context(), receiving.ID(), nil); err != nil { // and one whose metadata are not there yet
		t.Fatal(err)
	}
	receiving.Release()
	r.metrics.count.Add(-2) // those that are held elsewhere
	r.metrics.dataResident.Add(-2)
	r.metrics.metaResident.Add(-2)
	got, err := r.recovered(t, start)
	if want := append(old, ahead); err != nil || !slices.Equal(got, want) {
		t.Errorf("SP-3 recovered %v, %v; want %v", got, err, want)
	}
	// The clock went back after the start: own IDs look older than start.
	if _, err := r.recovered(t, start.AddDate(1, 0, 0)); err != nil || r.data.Len() != 6 {
		t.Errorf("data of a message in reception removed: %v, %d data", err, r.data.Len())
	}
}

func TestRecoverEnds(t *testing.T) {
	r := newRig(t)
	ids := stored(t, r, 3)
	r = r.restarted()
	for m, err := range r.Recover(t.Context(), time.Now().Add(time.Second)) {
		if err != nil || m.ID() != ids[0] {
			t.Fatal(m, err)
		}
		m.Release()
		break // by the caller
	}
	r.gauges(t, 0, 0, 0)
	for _, sp := range []interface{ Close() error }{r.data, r.meta} {
		_ = sp.Close()
		if _, err := r.recovered(t, time.Now()); !errors.Is(err, spool.ErrClosed) {
			t.Errorf("of a closed spool: %v", err)
		}
	}
}

func TestQuarantineNeverSplits(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(r *rig, w *watch)
	}{
		{"data cannot be set aside", func(_ *rig, w *watch) { w.fail["data put"] = errors.New("boom") }},
		{"no Quarantiner", func(r *rig, _ *watch) { r.Data = plain{r.data} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t)
			id := stored(t, r, 1)[0]
			r.meta.Corrupt(id)
			tc.spoil(r, &watch{fail: map[string]error{}})
			r = r.restarted()
			w := r.watch()
			tc.spoil(r, w)
			if got, err := r.recovered(t, time.Now().Add(time.Second)); err != nil || len(got) != 0 {
				t.Errorf("%v, %v", got, err)
			}
			if r.data.Len() != 1 || r.meta.Len() != 1 {
				t.Errorf("%d meta, %d data stay", r.meta.Len(), r.data.Len())
			}
		})
	}
}

// BenchmarkRecover enumerates 100,000 small messages from bolt; ns/message is the figure that counts.
func BenchmarkRecover(b *testing.B) {
	const n, batch = 100_000, 1000
	dir, ctx := b.TempDir(), b.Context()
	o := bolt.Options{NoSync: true, Log: discard()}
	meta, err := bolt.Open(dir+"/meta", o)
	if err != nil {
		b.Fatal(err)
	}
	data, err := bolt.Open(dir+"/data", o)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _, _ = meta.Close(), data.Close() }()
	s, body := NewStore(meta, data, nil, discard()), bytes.Repeat([]byte("x"), 200)
	ms := make([]*Message, batch)
	for range n / batch {
		for i := range ms {
			ms[i] = s.New(envelope, body)
			fill(ms[i].meta, 10)
		}
		if err := s.SaveAll(ctx, ms...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		found := 0
		for m, err := range NewStore(meta, data, nil, discard()).Recover(ctx, time.Now()) {
			if err != nil {
				b.Fatal(err)
			}
			m.Release()
			found++
		}
		if found != n {
			b.Fatalf("%d found", found)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/message")
}
