package mta

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"example.com/svc/mta/metric"
	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

// rig is a store over two spools in memory, with what its gauges say.
type rig struct {
	*Store
	meta, data *memory.Spool
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{meta: memory.New(), data: memory.New()}
	r.Store = NewStore(r.meta, r.data, metric.NewSet(), discard())
	return r
}

// gauges checks message_count, message_data_resident_count and message_meta_resident_count.
func (r *rig) gauges(t *testing.T, count, data, meta float64) {
	t.Helper()
	g := r.Store.metrics
	if c, d, m := float64(g.count.Value()), float64(g.dataResident.Value()), float64(g.metaResident.Value()); c != count ||
		d != data || m != meta {
		t.Errorf("gauges: %v messages, %v data, %v meta; want %v, %v, %v", c, d, m, count, data, meta)
	}
}

var envelope = Envelope{
	Sender:     Address{Local: "from", Domain: "a.example"},
	Recipients: []Address{{Local: "one", Domain: "b.example"}, {Local: "two", Domain: "b.example"}},
}

func content(t *testing.T, m *Message) string {
	t.Helper()
	b, err := m.Data(t.Context())
	if err != nil {
		t.Fatalf("Data: %v", err)
	}
	return string(b)
}

func TestShrinkAndReload(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	m := r.New(envelope, []byte("content"))
	if err := m.SetMeta(ctx, MetaTenant, "acme"); err != nil {
		t.Fatal(err)
	}
	r.gauges(t, 1, 1, 1)
	if err := m.ShrinkData(ctx); err != nil || m.Size() != 0 || m.Dirty() || !m.Spooled() {
		t.Fatalf("ShrinkData: %v, size %d, dirty %v", err, m.Size(), m.Dirty())
	}
	r.gauges(t, 1, 0, 1)
	if m.Envelope().Recipients[1].Local != "two" {
		t.Errorf("the envelope left memory: %+v", m.Envelope())
	}
	if err := m.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	r.gauges(t, 1, 0, 0)
	if got := content(t, m); got != "content" {
		t.Errorf("reloaded %q", got)
	}
	q, err := m.Queue(ctx)
	if err != nil || q.String() != "acme@b.example" {
		t.Errorf("queue after reload: %v, %v", q, err)
	}
	r.gauges(t, 1, 1, 1)
	if m.Dirty() {
		t.Error("loading made it dirty")
	}
	m.Release()
	m.Release()
	r.gauges(t, 0, 0, 0)
	if got := content(t, m); got != "content" { // against M1, yet no reason for wrong gauges
		t.Errorf("after Release: %q", got)
	}
	r.gauges(t, 0, 0, 0)
}

func TestSettersOnShrunkMessage(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	m := r.New(envelope, []byte("content"))
	if err := m.SetMeta(ctx, "x_key", int64(7)); err != nil {
		t.Fatal(err)
	}
	if err := m.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	m.SetRecipients(envelope.Recipients[1:])
	m.SetSender(Address{})
	m.SetScheduling(&Scheduling{Expires: time.Unix(5e9, 0)})
	if !m.Dirty() {
		t.Fatal("not dirty")
	}
	if err := m.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	again, err := r.Load(ctx, m.ID())
	if err != nil {
		t.Fatal(err)
	}
	e := again.Envelope()
	if len(e.Recipients) != 1 || e.Recipients[0].Local != "two" || !e.Sender.IsNull() {
		t.Errorf("envelope %+v", e)
	}
	if s := again.Scheduling(); s == nil || s.Expires.Unix() != 5e9 {
		t.Errorf("scheduling %+v", s)
	}
	if meta, err := again.Meta(ctx); err != nil || meta.Len() != 1 {
		t.Errorf("the metadata were lost: %v, %v", meta, err)
	}
	if got := content(t, again); got != "content" {
		t.Errorf("content %q", got)
	}
}

func TestPrepend(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	buf := append(make([]byte, 10), "body"...)
	m := r.NewBuffer(envelope, buf, 10)
	for _, step := range []struct{ header, want string }{
		{"A: 1\r\n", "A: 1\r\nbody"},                        // within the headroom
		{"BC\r\n", "BC\r\nA: 1\r\nbody"},                    // exactly the rest of it
		{"D: 2\r\n", "D: 2\r\nBC\r\nA: 1\r\nbody"},          // beyond it
		{"E: 3\r\n", "E: 3\r\nD: 2\r\nBC\r\nA: 1\r\nbody"},  // within the new one
		{"", "E: 3\r\nD: 2\r\nBC\r\nA: 1\r\nbody"},          // nothing
		{string(bytes.Repeat([]byte("x"), 2*headroom)), ""}, // more than any headroom
	} {
		before := content(t, m)
		if err := m.Prepend(ctx, []byte(step.header)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, m); got != step.header+before || step.want != "" && got != step.want {
			t.Errorf("after %q: %q", step.header, got)
		}
		if m.Size() != len(step.header)+len(before) {
			t.Errorf("size %d", m.Size())
		}
	}
	if string(buf[:10]) != "BC\r\nA: 1\r\n" {
		t.Errorf("the headroom was not used: %q", buf[:10])
	}
	if err := m.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	before := content(t, m)
	if err := m.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	if err := m.Prepend(ctx, []byte("F: 4\r\n")); err != nil || !m.Dirty() { // loads it first
		t.Fatal(err)
	}
	if got := content(t, m); got != "F: 4\r\n"+before {
		t.Error("header before shrunk content")
	}
	r.gauges(t, 1, 1, 0)
}

func TestDataMayBeAppendedTo(t *testing.T) {
	r := newRig(t)
	m := r.New(envelope, append(make([]byte, 0, 64), "body"...))
	a, _ := m.Data(t.Context())
	b, _ := m.Data(t.Context())
	a, b = append(a, '1'), append(b, '2')
	if string(a) != "body1" || string(b) != "body2" || content(t, m) != "body" {
		t.Errorf("%q and %q share room", a, b)
	}
}

func TestEmptyContent(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	m := r.New(envelope, nil)
	if err := m.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	if got := content(t, m); got != "" {
		t.Errorf("%q", got)
	}
	r.gauges(t, 1, 1, 0)
}

func TestReleasedContentIsNotSavedEmpty(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	m := r.NewBuffer(envelope, make([]byte, 20), 5)
	m.Release()
	if err := m.Save(ctx); !errors.Is(err, ErrNoContent) || r.data.Len()+r.meta.Len() != 0 {
		t.Errorf("Save: %v, %d records", err, r.data.Len())
	}
	if _, err := m.Data(ctx); !errors.Is(err, ErrNoContent) {
		t.Errorf("Data: %v", err)
	}
	if _, err := m.Meta(ctx); !errors.Is(err, ErrNoContent) {
		t.Errorf("Meta: %v", err)
	}
}

func TestLoadErrors(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	m := r.New(envelope, []byte("content"))
	if err := m.Shrink(ctx); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	fail := func(memory.Op, spool.ID) error { return boom }
	r.data.SetFault(fail)
	r.meta.SetFault(fail)
	if _, err := m.Data(ctx); !errors.Is(err, boom) {
		t.Errorf("Data: %v", err)
	}
	if err := m.Prepend(ctx, []byte("A: 1\r\n")); !errors.Is(err, boom) {
		t.Errorf("Prepend: %v", err)
	}
	if _, err := m.Queue(ctx); !errors.Is(err, boom) {
		t.Errorf("Queue: %v", err)
	}
	if err := m.SetMeta(ctx, "k", "v"); !errors.Is(err, boom) || m.Dirty() {
		t.Errorf("SetMeta: %v", err)
	}
	if _, err := r.Load(ctx, m.ID()); !errors.Is(err, boom) {
		t.Errorf("Load: %v", err)
	}
	r.gauges(t, 1, 0, 0)
	r.data.SetFault(nil)
	r.meta.SetFault(nil)
	r.data.Corrupt(m.ID())
	var corrupt *spool.CorruptError
	if _, err := m.Data(ctx); !errors.As(err, &corrupt) || corrupt.ID != m.ID() {
		t.Errorf("Data of a corrupt record: %v", err)
	}
	if _, err := r.Load(ctx, spool.NewIDs().Next()); !errors.Is(err, spool.ErrNotFound) {
		t.Errorf("Load of nothing: %v", err)
	}
}

func TestMessageQueue(t *testing.T) {
	r := newRig(t)
	for _, tc := range []struct {
		name string
		meta map[string]any
		rcpt []Address
		want string
	}{
		{"QN-1 domain in lower case", nil, []Address{{"u", "B.Example"}}, "b.example"},
		{"QN-1 all parts", map[string]any{MetaTenant: "t", MetaCampaign: "c", MetaRoutingDomain: "r"},
			[]Address{{"u", "d"}, {"v", "e"}}, "c:t@d!r"},
		{"QN-1 meta queue wins", map[string]any{MetaTenant: "t", MetaQueue: "other@x"}, []Address{{"u", "d"}}, "other@x"},
		{"QN-1 empty meta queue counts as unset", map[string]any{MetaQueue: ""}, []Address{{"u", "d"}}, "d"},
		{"QN-1 no recipient", nil, nil, ""},
		{"QN-1 not a string", map[string]any{MetaTenant: int64(1)}, nil, "error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := r.New(Envelope{Recipients: tc.rcpt}, nil)
			for k, v := range tc.meta {
				if err := m.SetMeta(t.Context(), k, v); err != nil {
					t.Fatal(err)
				}
			}
			q, err := m.Queue(t.Context())
			if tc.want == "error" != (err != nil) || err == nil && q.String() != tc.want {
				t.Errorf("%q, %v; want %q", q, err, tc.want)
			}
		})
	}
}

func TestDueAndAttempts(t *testing.T) {
	m := newRig(t).New(envelope, nil)
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	for _, tc := range []struct{ in, want time.Time }{
		{time.Time{}, time.Time{}},
		{year(2030), year(2030)},
		{year(9999), time.Unix(0, math.MaxInt64)}, // not at once
		{year(1000), time.Time{}},
	} {
		m.SetDue(tc.in)
		if got := m.Due(); !got.Equal(tc.want) {
			t.Errorf("due %v, want %v", got, tc.want)
		}
	}
	for _, tc := range [][2]int{{3, 3}, {-1, 0}, {1 << 20, 0xffff}} {
		m.SetAttempts(tc[0])
		if m.Attempts() != tc[1] {
			t.Errorf("attempts %d, want %d", m.Attempts(), tc[1])
		}
	}
	if d := time.Since(m.Created()); d < -time.Second || d > time.Minute {
		t.Errorf("SQ-23 created %v ago", d)
	}
}

func TestSplit(t *testing.T) {
	r, ctx := newRig(t), t.Context()
	m := r.New(envelope, []byte("content"))
	if err := m.SetMeta(ctx, "x_k", "v"); err != nil {
		t.Fatal(err)
	}
	m.SetScheduling(&Scheduling{Window: &Window{Days: 1, Zone: "UTC", End: 60}})
	m.SetDue(time.Unix(5e9, 0))
	m.SetReception(&Record{SessionID: "s"})
	c, err := r.Split(ctx, m, envelope.Recipients[1:])
	if err != nil {
		t.Fatal(err)
	}
	r.gauges(t, 2, 2, 2)
	if c.ID() == m.ID() || len(c.Envelope().Recipients) != 1 || c.Envelope().Sender != envelope.Sender {
		t.Errorf("envelope %+v", c.Envelope())
	}
	if !c.Due().Equal(m.Due()) || c.Scheduling().Window.End != 60 {
		t.Errorf("due %v, scheduling %+v", c.Due(), c.Scheduling())
	}
	if err := c.SetMeta(ctx, "x_k", "other"); err != nil {
		t.Fatal(err)
	}
	c.Scheduling().Window.End = 90
	d, _ := c.Data(ctx)
	d[0] = 'C'
	meta, _ := m.Meta(ctx)
	if meta.String("x_k") != "v" || content(t, m) != "content" || m.Scheduling().Window.End != 60 {
		t.Error("the parts are not independent")
	}
	a, b := m.TakeReception(), c.TakeReception()
	if a == nil || b == nil || a == b || b.SessionID != "s" || c.TakeReception() != nil {
		t.Errorf("reception %+v, %+v", a, b)
	}
}

func TestBufferOffset(t *testing.T) {
	r := newRig(t)
	defer func() {
		if recover() == nil {
			t.Error("a wrong offset was taken")
		}
		r.gauges(t, 0, 0, 0)
	}()
	r.NewBuffer(envelope, make([]byte, 3), 4)
}

func TestMessageOfCancelledContext(t *testing.T) {
	r := newRig(t)
	m := r.New(envelope, []byte("content"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Shrink(ctx); !errors.Is(err, context.Canceled) || m.Size() != 7 || !m.Dirty() {
		t.Errorf("Shrink: %v, size %d", err, m.Size())
	}
	r.gauges(t, 1, 1, 1)
}
