package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/settings"
)

func TestRefresh(t *testing.T) {
	bubble(t, "SQ-4 Ttl, Epoch, failure keeps the old", func(t *testing.T) {
		var epoch settings.Epoch
		asked := map[string]int{}
		var mu sync.Mutex
		var broken error
		var last atomic.Pointer[Config]
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			last.Store(k.Config)
			return deliver(ctx, k)
		}), func(r *rig) { r.opts.Epoch = &epoch })
		if err := GetConfig.On(r.bus, func(_ context.Context, n mta.QueueName) (*Config, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[n.Domain]++
			c := settings.New(func(c *Config) { c.EgressPool = fmt.Sprintf("pool%d", asked[n.Domain]) })
			if n.Domain == "epoch.example" {
				c.RefreshStrategy = Epoch
			}
			if asked[n.Domain] == 2 {
				c.Strategy = SingletonTimerWheelV2
			}
			return &c, broken
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		r.insert(r.msg("a@ttl.example"), r.msg("a@epoch.example"))
		expect := func(when string, ttl, ep int) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if asked["ttl.example"] != ttl || asked["epoch.example"] != ep {
				t.Errorf("%s: asked %v", when, asked)
			}
		}
		pass(55 * time.Second)
		expect("before the interval", 1, 1)
		pass(10 * time.Second)
		expect("after the interval", 2, 1)
		epoch.Bump()
		pass(time.Second)
		expect("after a bump", 2, 2)
		r.insert(r.msg("a@ttl.example"))
		pass(time.Second)
		if c := last.Load(); c.EgressPool != "pool2" || c.Strategy != SingletonTimerWheel {
			t.Errorf("SQ-5: config %+v", c)
		}
		mu.Lock()
		broken = errors.New("broken")
		mu.Unlock()
		pass(70 * time.Second)
		r.insert(r.msg("a@ttl.example"))
		pass(time.Second)
		if c := last.Load(); c.EgressPool != "pool2" {
			t.Errorf("a failed refresh changed the pool to %s", c.EgressPool)
		}
		r.stop()
	})
}

func TestReap(t *testing.T) {
	bubble(t, "SQ-6", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		r.config(func(c *Config) { c.ReapInterval = dur(time.Minute) })
		r.start()
		r.insert(r.msg("a@b.example"))
		keep := r.msg("a@keep.example")
		keep.SetScheduling(&mta.Scheduling{FirstAttempt: time.Now().Add(time.Hour)})
		r.insert(keep)
		pass(50 * time.Second)
		if n := r.m.Stats().Queues; n != 2 {
			t.Errorf("%d queues", n)
		}
		pass(30 * time.Second)
		if n := r.m.Stats().Queues; n != 1 {
			t.Errorf("%d queues after reap_interval", n)
		}
		pass(2 * time.Hour)
		if n := r.m.Stats().Queues; n != 0 {
			t.Errorf("%d queues in the end", n)
		}
		r.stop()
	})
}

func TestMetrics(t *testing.T) {
	bubble(t, "MT-7", func(t *testing.T) {
		r := newRig(t, outlet(fail)).start()
		msg := r.msg("a@b.example")
		for k, v := range map[string]string{mta.MetaTenant: "t", mta.MetaCampaign: "c"} {
			if err := msg.SetMeta(context.Background(), k, v); err != nil {
				t.Fatal(err)
			}
		}
		r.insert(msg, r.msg("a@b.example"))
		pass(time.Minute)
		var text strings.Builder
		if err := r.set.WritePrometheus(&text, ""); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`scheduled_count{queue="c:t@b.example"} 1`, `scheduled_count{queue="b.example"} 1`,
			`scheduled_by_domain{domain="b.example"} 2`, `scheduled_by_tenant{tenant="t"} 1`,
			`scheduled_by_tenant_campaign{tenant="t",campaign="c"} 1`, "scheduled_count_total 2", "scheduled_queue_count 2",
			"scheduled_queue_maintainer_count 0", "total_qmaint_runs 2", "queue_insert_latency_count 1"} {
			if !strings.Contains(text.String(), want+"\n") {
				t.Errorf("no %s", want)
			}
		}
		n := 0
		for q := range r.m.Queues() {
			n += q.Scheduled
		}
		if n != 2 {
			t.Errorf("Queues shows %d scheduled", n)
		}
		r.stop()
	})
}

// One queue with a large backlog and many queues whose outlet blocks must not starve others.
func TestFairness(t *testing.T) {
	bubble(t, "fair", func(t *testing.T) {
		var big, small atomic.Int64
		release := make(chan struct{})
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			switch k.Queue[0] {
			case 's':
				if small.Add(1); big.Load() > 2*serveBatch {
					t.Errorf("served after %d of the big queue", big.Load())
				}
			case 'd': // waits for DNS
				<-release
			default:
				big.Add(1)
			}
			return deliver(ctx, k)
		}), func(r *rig) { r.opts.PromoteWorkers = 4 })
		for i := range 3 {
			r.insert(r.msg(fmt.Sprintf("a@dns%d.example", i)))
		}
		ms := make([]*mta.Message, 10000)
		for i := range ms {
			ms[i] = r.msg("a@big.example")
		}
		r.insert(ms...)
		r.insert(r.msg("a@small.example"))
		r.start()
		pass(time.Second)
		if small.Load() != 1 || big.Load() != 10000 {
			t.Errorf("small %d, big %d", small.Load(), big.Load())
		}
		close(release)
		pass(time.Second)
		r.stop()
	})
	bubble(t, "FIFO within a queue", func(t *testing.T) {
		var order []string
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			order = append(order, k.Message.Envelope().Recipients[0].Local)
			return deliver(ctx, k)
		}))
		for i := range 500 {
			r.insert(r.msg(fmt.Sprintf("%d@b.example", i)))
		}
		r.start()
		pass(time.Second)
		for i, s := range order {
			if s != fmt.Sprint(i) {
				t.Fatalf("place %d has message %s", i, s)
			}
		}
		r.stop()
	})
}

func TestResidentBudget(t *testing.T) {
	bubble(t, "bodies beyond the budget leave the memory", func(t *testing.T) {
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			if data, err := k.Message.Data(ctx); err != nil || len(data) == 0 {
				t.Errorf("data: %v", err)
			}
			return deliver(ctx, k)
		}), func(r *rig) { r.opts.ResidentBytes = 50 })
		ms := []*mta.Message{r.msg("a@b.example"), r.msg("a@b.example"), r.msg("a@b.example")}
		r.insert(ms...)
		if ms[0].Size() == 0 || ms[1].Size() == 0 || ms[2].Size() != 0 {
			t.Errorf("sizes %d %d %d", ms[0].Size(), ms[1].Size(), ms[2].Size())
		}
		r.start()
		pass(time.Second)
		if len(r.book.of(mta.Delivery)) != 3 {
			t.Error("not delivered")
		}
		r.stop()
	})
}

// TestMemory measures what a queued message costs.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("allocates 100,000 messages")
	}
	const n, limit = 100_000, 600
	r := newRig(t, outlet(func(context.Context, *Ticket) error { return &Busy{} }))
	r.opts.Recorder = discard{}
	first := time.Now().Add(time.Hour)
	sched := &mta.Scheduling{FirstAttempt: first}
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	spooled := func() uint64 { // what the spool in memory keeps is not ours
		before := heap()
		store := mta.NewStore(r.meta, r.data, nil, r.opts.Log)
		ms := make([]*mta.Message, 0, 1000)
		for i := range n {
			msg := store.New(mta.Envelope{Sender: mta.Address{Local: "from", Domain: "sender.example"},
				Recipients: []mta.Address{{Local: fmt.Sprintf("user%d", i), Domain: fmt.Sprintf("d%d.example", i%1000)}}},
				make([]byte, 1000))
			msg.SetScheduling(sched)
			if ms = append(ms, msg); len(ms) == cap(ms) {
				if err := store.SaveAll(context.Background(), ms...); err != nil {
					t.Fatal(err)
				}
				ms = ms[:0]
			}
		}
		clear(ms[:cap(ms)])
		return heap() - before
	}()
	m, err := New(r.opts)
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	start := time.Now()
	go func() { done <- m.Run(ctx) }()
	<-m.Recovered()
	took := time.Since(start)
	per := (heap() - before) / n
	t.Logf("%d bytes of heap for each of %d queued messages, recovered in %v (%d bytes each in the spool)", per, n, took,
		spooled/n)
	if s := m.Stats(); s.Scheduled != n || s.Queues != 1000 {
		t.Errorf("%+v", s)
	}
	if per > limit {
		t.Errorf("more than %d bytes", limit)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// discard is a Recorder that forgets.
type discard struct{}

func (discard) Record(context.Context, *mta.Message, *mta.Record) error { return nil }
