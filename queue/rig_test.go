package queue

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

// outlet is an Outlet made of a function.
type outlet func(ctx context.Context, t *Ticket) error

func (o outlet) Take(ctx context.Context, t *Ticket) error { return o(ctx, t) }

// ledger is a Recorder that remembers.
type ledger struct {
	mu   sync.Mutex
	recs []*mta.Record
	at   []time.Time
	fail func(r *mta.Record) error
}

func (l *ledger) Record(_ context.Context, _ *mta.Message, r *mta.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(r); err != nil {
			return err
		}
	}
	l.recs, l.at = append(l.recs, r), append(l.at, time.Now())
	return nil
}

// of returns the records of a type.
func (l *ledger) of(t mta.RecordType) []*mta.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*mta.Record
	for _, r := range l.recs {
		if r.Type == t {
			out = append(out, r)
		}
	}
	return out
}

// types returns the types of the records of id in order; of all with the zero ID.
func (l *ledger) types(id spool.ID) []mta.RecordType {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []mta.RecordType
	for _, r := range l.recs {
		if id.IsZero() || r.ID == id {
			out = append(out, r.Type)
		}
	}
	return out
}

// rig is a manager with everything around it.
type rig struct {
	t          testing.TB
	meta, data *memory.Spool
	store      *mta.Store
	bus        *event.Local
	book       *ledger
	set        *metric.Set
	opts       Options
	m          *Manager
	cancel     context.CancelFunc
	done       chan error
}

// newRig makes a rig whose manager is not running.
func newRig(t testing.TB, o Outlet, edit ...func(*rig)) *rig {
	r := &rig{t: t, meta: memory.New(), data: memory.New(), bus: new(event.Local), book: new(ledger),
		set: metric.NewSet()}
	r.opts.Outlet = o
	for _, e := range edit {
		e(r)
	}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	r.store = mta.NewStore(r.meta, r.data, nil, quiet)
	r.opts.Store, r.opts.Bus, r.opts.Recorder, r.opts.Metrics = r.store, r.bus, r.book, r.set
	if r.opts.Log == nil {
		r.opts.Log = quiet
	}
	m, err := New(r.opts)
	if err != nil {
		t.Fatal(err)
	}
	r.m = m
	return r
}

// start runs the manager and waits for the recovery.
func (r *rig) start() *rig {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.done = cancel, make(chan error, 1)
	go func() { r.done <- r.m.Run(ctx) }()
	<-r.m.Recovered()
	return r
}

// stop ends the manager.
func (r *rig) stop() {
	r.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.t.Errorf("Run: %v", err)
	}
	if n := r.m.Len(); n != 0 {
		r.t.Errorf("%d messages are held after Run", n)
	}
	if s := r.m.Stats(); s.Lent != 0 || s.Scheduled != 0 || s.ResidentBytes != 0 {
		r.t.Errorf("after Run: %+v", s)
	}
}

// msg makes a message.
func (r *rig) msg(rcpts ...string) *mta.Message {
	r.t.Helper()
	env := mta.Envelope{Sender: mta.Address{Local: "from", Domain: "sender.example"}}
	for _, s := range rcpts {
		a, err := mta.ParseAddress(s)
		if err != nil {
			r.t.Fatal(err)
		}
		env.Recipients = append(env.Recipients, a)
	}
	return r.store.New(env, []byte("Subject: x\r\n\r\nhello\r\n"))
}

func (r *rig) insert(ms ...*mta.Message) {
	r.t.Helper()
	if err := r.m.Insert(context.Background(), ms...); err != nil {
		r.t.Fatal(err)
	}
}

// config answers get_queue_config for every queue.
func (r *rig) config(edit ...func(*Config)) {
	c := settings.New(edit...)
	if err := GetConfig.On(r.bus, func(context.Context, mta.QueueName) (*Config, error) { return &c, nil }); err != nil {
		r.t.Fatal(err)
	}
}

// stored is the number of messages in the spools; both have to agree.
func (r *rig) stored() int {
	r.t.Helper()
	if a, b := r.meta.Len(), r.data.Len(); a != b {
		r.t.Errorf("%d metadata records, %d data records", a, b)
	}
	return r.meta.Len()
}

// metric returns the value of a family's only or summed series.
func (r *rig) counter(name string, labels ...string) int {
	return int(r.set.Counter(name, "", "queue").With(labels...).Value())
}

func deliver(ctx context.Context, t *Ticket) error {
	return t.Finish(ctx, nil, []mta.Result{{Response: mta.Response{Code: 250}, Disposition: mta.Delivered}})
}

func fail(ctx context.Context, t *Ticket) error {
	return t.Finish(ctx, nil, []mta.Result{{Response: mta.Response{Code: 451, Content: "later"},
		Disposition: mta.Transient}})
}

// bubble runs a test in fake time.
func bubble(t *testing.T, name string, fn func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, fn) })
}

// pass lets time go by until everything stands still.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func dur(d time.Duration) settings.Duration { return settings.Duration(d) }

// tally counts from several goroutines.
type tally struct{ n atomic.Int64 }

// up adds one and returns the sum.
func (c *tally) up() int { return int(c.n.Add(1)) }

func (c *tally) get() int { return int(c.n.Load()) }

// words is a list that several goroutines write.
type words struct {
	mu   sync.Mutex
	list []string
}

// add appends s and returns the new length.
func (w *words) add(s string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, s)
	return len(w.list)
}

func (w *words) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}
