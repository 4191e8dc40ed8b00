package mta

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/svc/spool"
	"example.com/svc/spool/bolt"
	"example.com/svc/spool/memory"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// watch notes every operation on both spools in order and makes those fail that fail names, such as "meta put".
type watch struct {
	mu   sync.Mutex // protects ops
	ops  []string
	fail map[string]error
	only spool.ID // when set, only operations on it fail
}

func (w *watch) on(name string) memory.Fault {
	return func(op memory.Op, id spool.ID) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		what := name + " " + string(op)
		w.ops = append(w.ops, what)
		if !w.only.IsZero() && id != w.only {
			return nil
		}
		return w.fail[what]
	}
}

func (r *rig) watch() *watch {
	w := &watch{fail: map[string]error{}}
	r.meta.SetFault(w.on("meta"))
	r.data.SetFault(w.on("data"))
	return w
}

func (w *watch) take() string {
	s := strings.Join(slices.Compact(w.ops), ", ")
	w.ops = nil
	return s
}

func (r *rig) some(n int) []*Message {
	ms := make([]*Message, n)
	for i := range ms {
		ms[i] = r.New(envelope, fmt.Append(nil, "content ", i))
	}
	return ms
}

func TestSaveOrder(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	w := r.watch()
	m := r.some(1)[0]
	for _, step := range []struct {
		name string
		do   func() error
		ops  string
	}{
		{"M2 data before meta", func() error { return m.Save(ctx) }, "data put, meta put"},
		{"nothing to save", func() error { return m.Save(ctx) }, ""},
		{"only meta", func() error { m.Touch(); return m.Save(ctx) }, "meta put"},
		{"only data", func() error { m.SetData([]byte("new")); return m.Save(ctx) }, "data put"},
		{"M2 several", func() error { return r.SaveAll(ctx, r.some(3)...) }, "data put, meta put"},
		{"M2 meta removed first", func() error { return r.Remove(ctx, m) }, "meta delete, data delete"},
		{"never saved", func() error { return r.Remove(ctx, r.some(1)...) }, ""},
		{"nobody", func() error { return errors.Join(r.SaveAll(ctx), r.Remove(ctx), r.RemoveIDs(ctx, nil)) }, ""},
	} {
		if err := step.do(); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		if got := w.take(); got != step.ops {
			t.Errorf("%s: %q, want %q", step.name, got, step.ops)
		}
	}
	if r.meta.Len() != 3 || r.data.Len() != 3 {
		t.Errorf("%d meta, %d data", r.meta.Len(), r.data.Len())
	}
}

func TestFailedSaveLeavesNothing(t *testing.T) {
	boom := errors.New("boom")
	for _, op := range []string{"data put", "meta put"} {
		for _, n := range []int{1, 3} {
			t.Run(fmt.Sprintf("M2 %s fails for %d", op, n), func(t *testing.T) {
				r, ctx := newRig(t), t.Context()
				w := r.watch()
				w.fail[op] = boom
				ms := r.some(n)
				w.only = ms[n-1].ID()
				if err := r.SaveAll(ctx, ms...); !errors.Is(err, boom) || !strings.Contains(err.Error(), ms[0].ID().String()) {
					t.Fatalf("SaveAll: %v", err)
				}
				if op == "data put" && strings.Contains(w.take(), "meta put") {
					t.Error("meta written without data")
				}
				if r.meta.Len()+r.data.Len() != 0 {
					t.Errorf("%d meta and %d data stay", r.meta.Len(), r.data.Len())
				}
				for _, m := range ms {
					if m.Spooled() || !m.Dirty() {
						t.Error("counts as stored")
					}
				}
				clear(w.fail)
				if err := r.SaveAll(ctx, ms...); err != nil || r.meta.Len() != n || r.data.Len() != n {
					t.Errorf("second try: %v, %d meta, %d data", err, r.meta.Len(), r.data.Len())
				}
			})
		}
	}
}

// One by one: a spool that is no Batcher leaves the items before the failure.
type plain struct{ spool.Spool }

func TestFailedSaveWithoutBatcher(t *testing.T) {
	boom := errors.New("boom")
	for _, op := range []string{"data put", "meta put"} {
		r, ctx := newRig(t), t.Context()
		r.Store = NewStore(plain{r.meta}, plain{r.data}, nil, discard())
		w := r.watch()
		ms := r.some(3)
		w.only, w.fail[op] = ms[2].ID(), boom
		if err := r.SaveAll(ctx, ms...); !errors.Is(err, boom) || r.meta.Len()+r.data.Len() != 0 {
			t.Errorf("%s: %v, %d meta and %d data stay", op, err, r.meta.Len(), r.data.Len())
		}
	}
}

func TestFailedSaveKeepsWhatWasStored(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	old := r.some(1)[0]
	if err := old.Save(ctx); err != nil {
		t.Fatal(err)
	}
	old.SetRecipients(nil)
	w := r.watch()
	w.fail["meta put"] = errors.New("boom")
	if err := r.SaveAll(ctx, append(r.some(2), old)...); err == nil {
		t.Fatal("no error")
	}
	if r.meta.Len() != 1 || r.data.Len() != 1 || !old.Dirty() || !old.Spooled() {
		t.Errorf("%d meta, %d data, dirty %v", r.meta.Len(), r.data.Len(), old.Dirty())
	}
	clear(w.fail)
	again, err := r.Load(ctx, old.ID())
	if err != nil || len(again.Envelope().Recipients) != 2 {
		t.Errorf("the older record is not what it was: %v", err)
	}
}

func TestFailedUnwind(t *testing.T) {
	boom := errors.New("boom")
	r, ctx := newRig(t), t.Context()
	w := r.watch()
	w.fail["meta put"], w.fail["meta delete"] = boom, boom
	m := r.some(1)[0]
	if err := m.Save(ctx); !errors.Is(err, boom) || m.Spooled() {
		t.Fatalf("Save: %v", err)
	}
	// The meta record may be there, so the data have to stay with it.
	if got := w.take(); got != "data put, meta put, meta delete" || r.data.Len() != 1 {
		t.Errorf("%s; %d data", got, r.data.Len())
	}
}

func TestRemoved(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	m := r.some(1)[0]
	if err := m.Save(ctx); err != nil {
		t.Fatal(err)
	}
	w := r.watch()
	w.fail["data delete"] = errors.New("boom")
	if err := r.Remove(ctx, m); err == nil || !m.Dirty() {
		t.Errorf("a removal that failed: %v, dirty %v", err, m.Dirty())
	}
	clear(w.fail)
	if err := m.Save(ctx); err != nil || r.meta.Len() != 1 || r.data.Len() != 1 {
		t.Errorf("saving what was half removed: %v, %d meta, %d data", err, r.meta.Len(), r.data.Len())
	}
	if err := r.Remove(ctx, m); err != nil {
		t.Fatal(err)
	}
	m.Touch()
	if err := m.Save(ctx); !errors.Is(err, ErrRemoved) || m.Dirty() {
		t.Errorf("Save: %v, dirty %v", err, m.Dirty())
	}
	if err := m.Shrink(ctx); err != nil {
		t.Errorf("Shrink: %v", err)
	}
	if _, err := m.Data(ctx); !errors.Is(err, spool.ErrNotFound) {
		t.Errorf("Data: %v", err)
	}
	if r.meta.Len()+r.data.Len() != 0 {
		t.Error("came back")
	}
	m.Release()
	r.gauges(t, 0, 0, 0)
}

func TestBoltReopen(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	open := func() (*Store, func()) {
		meta, err := bolt.Open(dir+"/meta", bolt.Options{Log: discard()})
		if err != nil {
			t.Fatal(err)
		}
		data, err := bolt.Open(dir+"/data", bolt.Options{Log: discard()})
		if err != nil {
			t.Fatal(err)
		}
		return NewStore(meta, data, nil, discard()), func() { _, _ = meta.Close(), data.Close() }
	}
	s, done := open()
	kept := s.New(envelope, []byte("kept"))
	gone := s.New(envelope, []byte("gone"))
	if err := kept.SetMeta(ctx, "x_list", []any{int64(1), "two", nil}); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveAll(ctx, kept, gone); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(ctx, gone); err != nil {
		t.Fatal(err)
	}
	if err := s.Data.Put(ctx, spool.NewIDs().Next(), []byte("orphan")); err != nil {
		t.Fatal(err)
	}
	done()
	s, done = open()
	defer done()
	n := 0
	for m, err := range s.Recover(ctx, time.Now().Add(time.Hour)) {
		if err != nil {
			t.Fatal(err)
		}
		meta, _ := m.Meta(ctx)
		list, _ := meta.Get("x_list")
		if n++; m.ID() != kept.ID() || content(t, m) != "kept" || fmt.Sprintf("%T", list.([]any)[0]) != "int64" {
			t.Errorf("recovered %s with %v", m.ID(), meta.Map())
		}
	}
	for id := range s.Data.All(ctx) {
		if id != kept.ID() {
			t.Errorf("orphan %s stays", id)
		}
	}
	if n != 1 {
		t.Errorf("%d messages recovered", n)
	}
}
