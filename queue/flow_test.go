package queue

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/limit"
	"example.com/svc/spool"
)

func TestDeliver(t *testing.T) {
	bubble(t, "insert, take, finish", func(t *testing.T) {
		var tickets atomic.Int64
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			tickets.Add(1)
			if k.Queue != "b.example" || k.Name.Domain != "b.example" || k.Config == nil || k.Selector == nil {
				t.Errorf("ticket %+v", k)
			}
			return k.Finish(ctx, &mta.Record{Site: "site", EgressPool: "pool", DeliveryProtocol: "ESMTP"},
				[]mta.Result{{Response: mta.ParseResponse(250, "2.0.0 ok")}})
		})).start()
		msg := r.msg("a@B.example")
		if err := msg.SetMeta(context.Background(), mta.MetaReceptionProtocol, "ESMTP"); err != nil {
			t.Fatal(err)
		}
		msg.SetReception(&mta.Record{Peer: &mta.Peer{Name: "client"}, SessionID: "s"})
		id := msg.ID()
		r.insert(msg)
		pass(time.Second)
		if tickets.Load() != 1 || r.stored() != 0 || r.m.Len() != 0 {
			t.Errorf("%d tickets, %d stored, %d held", tickets.Load(), r.stored(), r.m.Len())
		}
		rec := r.book.of(mta.Reception)
		if len(rec) != 1 || rec[0].Peer.Name != "client" || rec[0].SessionID != "s" || rec[0].Response.Code != 250 ||
			rec[0].ReceptionProtocol != "ESMTP" || rec[0].Size == 0 || rec[0].Queue != "b.example" {
			t.Errorf("reception %+v", rec)
		}
		rec = r.book.of(mta.Delivery)
		if len(rec) != 1 || rec[0].ID != id || rec[0].Site != "site" || rec[0].EgressPool != "pool" ||
			rec[0].Sender != "from@sender.example" || !slices.Equal(rec[0].Recipients, []string{"a@B.example"}) ||
			rec[0].Attempts != 0 || rec[0].ReceptionProtocol != "ESMTP" {
			t.Errorf("delivery %+v", rec)
		}
		r.stop()
	})
}

// SQ-20 to SQ-24: a message that always fails is tried by the timetable for a week and then expires.
func TestWeekOfRetries(t *testing.T) {
	bubble(t, "SQ-24", func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			at = append(at, time.Since(start))
			if k.Message.Attempts() != len(at)-1 {
				t.Errorf("attempt %d says %d", len(at)-1, k.Message.Attempts())
			}
			return fail(ctx, k)
		})).start()
		msg := r.msg("a@b.example")
		id := msg.ID()
		r.insert(msg)
		pass(8 * 24 * time.Hour)
		want := []int{0, 20, 60, 140, 300, 620, 1260, 2540, 5100}
		if len(at) != len(want) {
			t.Fatalf("attempts at %v, want %d", at, len(want))
		}
		for i, min := range want {
			if off := at[i] - time.Duration(min)*time.Minute; off.Abs() > time.Duration(i)*31*time.Second {
				t.Errorf("attempt %d at %v, want about %d min", i, at[i], min)
			}
		}
		types := r.book.types(id)
		if n := len(types); n != len(want)+2 || types[n-1] != mta.Expiration {
			t.Errorf("records %v", types)
		}
		x := r.book.of(mta.Expiration)[0]
		if x.Response.Code != 551 || x.Response.Enhanced != expiredCode || x.Attempts != len(want) ||
			!strings.HasPrefix(x.Response.Content, mta.InternalPrefix) {
			t.Errorf("expiration %+v", x)
		}
		if r.stored() != 0 {
			t.Error("the expired message is still stored")
		}
		r.stop()
	})
}

func TestRequeueEvent(t *testing.T) {
	setup := func(t *testing.T, answer func(a RequeueMessage) error) (*rig, *words) {
		queues := new(words)
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			if queues.add(k.Queue) > 1 {
				return deliver(ctx, k)
			}
			return fail(ctx, k)
		}))
		if err := OnRequeue.On(r.bus, func(_ context.Context, a RequeueMessage) (event.None, error) {
			return event.None{}, answer(a)
		}); err != nil {
			t.Fatal(err)
		}
		return r.start(), queues
	}
	bubble(t, "SQ-19 another queue: attempt counts, due now", func(t *testing.T) {
		r, queues := setup(t, func(a RequeueMessage) error {
			if a.Response != "451 later" || !slices.Equal(a.Context, []string{Received, LoggedTransientFailure}) ||
				!a.Increment || a.Delay != nil {
				t.Errorf("asked %+v", a)
			}
			return a.Message.SetMeta(context.Background(), mta.MetaQueue, "slow")
		})
		r.insert(r.msg("a@b.example"))
		pass(time.Second)
		if !slices.Equal(queues.all(), []string{"b.example", "slow"}) {
			t.Errorf("queues %v", queues.all())
		}
		if d := r.book.of(mta.Delivery); len(d) != 1 || d[0].Attempts != 1 || d[0].Queue != "slow" {
			t.Errorf("delivery %+v", d)
		}
		r.stop()
	})
	bubble(t, "SQ-19 rejection bounces", func(t *testing.T) {
		r, _ := setup(t, func(RequeueMessage) error { return mta.Reject(550, "5.7.1 enough") })
		r.insert(r.msg("a@b.example"))
		pass(time.Second)
		b := r.book.of(mta.Bounce)
		if len(b) != 1 || b[0].Response.String() != "550 5.7.1 enough" || r.stored() != 0 {
			t.Errorf("bounce %+v, %d stored", b, r.stored())
		}
		r.stop()
	})
	bubble(t, "SQ-19 other errors keep the queue", func(t *testing.T) {
		r, queues := setup(t, func(a RequeueMessage) error {
			_ = a.Message.SetMeta(context.Background(), mta.MetaQueue, "slow")
			return errors.New("broken")
		})
		r.insert(r.msg("a@b.example"))
		pass(time.Minute)
		if len(queues.all()) != 1 || r.m.Len() != 1 {
			t.Errorf("queues %v", queues.all())
		}
		pass(time.Hour)
		if !slices.Equal(queues.all(), []string{"b.example", "b.example"}) {
			t.Errorf("queues %v", queues.all())
		}
		r.stop()
	})
}

func TestBusy(t *testing.T) {
	bubble(t, "SQ-16", func(t *testing.T) {
		var asked, requeued tally
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			if asked.up() == 1 {
				return &Busy{}
			}
			if k.Message.Attempts() != 0 {
				t.Error("the attempt was counted")
			}
			return deliver(ctx, k)
		}))
		if err := OnRequeue.On(r.bus, func(context.Context, RequeueMessage) (event.None, error) {
			requeued.up()
			return event.None{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		msg := r.msg("a@b.example")
		id := msg.ID()
		r.insert(msg)
		pass(time.Millisecond)
		d := r.book.of(mta.Delayed)
		if len(d) != 1 || d[0].Response.Code != 400 ||
			!strings.HasPrefix(d[0].Response.Content, "Context: Received, ReadyQueueWasFull. Next due in ") {
			t.Fatalf("delayed %+v", d)
		}
		if n := r.counter("delayed_due_to_ready_queue_full", "b.example"); n != 1 {
			t.Errorf("counted %d", n)
		}
		pass(61 * time.Second)
		if got := r.book.types(id); !slices.Equal(got, []mta.RecordType{mta.Reception, mta.Delayed, mta.Delivery}) {
			t.Errorf("records %v", got)
		}
		if requeued.get() != 0 {
			t.Error("requeue_message was raised")
		}
		r.stop()
	})
}

func TestUnroutable(t *testing.T) {
	bubble(t, "SQ-17 SQ-18", func(t *testing.T) {
		var asked tally
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			switch asked.up() {
			case 1:
				return &Unroutable{Response: mta.Internal(451, holdCode, "no sources")}
			case 2:
				panic("broken")
			}
			return deliver(ctx, k)
		})).start()
		msg := r.msg("a@b.example")
		id := msg.ID()
		r.insert(msg)
		pass(90 * time.Minute)
		if got := r.book.types(id); !slices.Equal(got, []mta.RecordType{mta.Reception, mta.TransientFailure,
			mta.Delayed, mta.Delivery}) {
			t.Errorf("records %v", got)
		}
		if d := r.book.of(mta.Delivery); len(d) != 1 || d[0].Attempts != 2 {
			t.Errorf("delivery %+v", d)
		}
		if d := r.book.of(mta.Delayed)[0]; !strings.Contains(d.Response.Content, FailedToInsertIntoReadyQueue) {
			t.Errorf("delayed %+v", d)
		}
		r.stop()
	})
}

func TestMessageRate(t *testing.T) {
	bubble(t, "SQ-13 exact delay", func(t *testing.T) {
		var n atomic.Int64
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error { n.Add(1); return deliver(ctx, k) }))
		rate, err := limit.ParseRate("10/s")
		if err != nil {
			t.Fatal(err)
		}
		r.config(func(c *Config) { c.MaxMessageRate = &rate })
		r.start()
		for range 30 {
			r.insert(r.msg("a@b.example"))
		}
		pass(time.Millisecond)
		if got := n.Load(); got < 9 || got > 11 {
			t.Errorf("%d delivered at once, want about 10", got)
		}
		d := r.book.of(mta.Delayed)
		if len(d)+int(n.Load()) != 30 || !strings.Contains(d[0].Response.Content, MessageRateThrottle) ||
			!strings.Contains(d[0].Response.Content, "Next due in 1s at") {
			t.Errorf("%d delayed: %+v", len(d), d[0])
		}
		if got := r.counter("delayed_due_to_message_rate_throttle", "b.example"); got != len(d) {
			t.Errorf("metric says %d, want %d", got, len(d))
		}
		pass(3 * time.Second)
		if got := n.Load(); got != 30 {
			t.Errorf("%d delivered after 3 s", got)
		}
		r.stop()
	})
	bubble(t, "SQ-13 a large backlog costs little", func(t *testing.T) {
		var n atomic.Int64
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error { n.Add(1); return deliver(ctx, k) }))
		rate, _ := limit.ParseRate("100/s")
		r.config(func(c *Config) { c.MaxMessageRate = &rate })
		r.start()
		ms := make([]*mta.Message, 5000)
		for i := range ms {
			ms[i] = r.msg("a@b.example")
		}
		r.insert(ms...)
		pass(10 * time.Second)
		if got := n.Load(); got < 1000 || got > 1200 {
			t.Errorf("%d delivered in 10 s, want about 1100", got)
		}
		if d := len(r.book.of(mta.Delayed)); d > 11*maxRated {
			t.Errorf("%d Delayed records in 10 s", d)
		}
		pass(time.Minute)
		if got := n.Load(); got != 5000 {
			t.Errorf("%d delivered in the end", got)
		}
		r.stop()
	})
}

func TestThrottlePolicy(t *testing.T) {
	bubble(t, "SQ-14 keeps the due time of the handler", func(t *testing.T) {
		var asked tally
		var at atomic.Pointer[time.Time]
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			at.Store(new(time.Now()))
			return deliver(ctx, k)
		}))
		if err := OnThrottleInsertReady.On(r.bus, func(_ context.Context, m *mta.Message) (event.None, error) {
			switch asked.up() {
			case 1:
				m.SetDue(time.Now().Add(90 * time.Second))
			case 2:
				return event.None{}, errors.New("broken")
			}
			return event.None{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		start := time.Now()
		r.insert(r.msg("a@b.example"))
		pass(80 * time.Second)
		d := r.book.of(mta.Delayed)
		if len(d) != 1 || !strings.Contains(d[0].Response.Content, ThrottledByThrottleInsertReady+". Next due in 1m 30s") {
			t.Fatalf("delayed %+v", d)
		}
		if n := r.counter("delayed_due_to_throttle_insert_ready", "b.example"); n != 1 || asked.get() != 1 {
			t.Errorf("metric %d, asked %d", n, asked.get())
		}
		pass(30 * time.Minute)
		if took := at.Load().Sub(start); took < 20*time.Minute || took > 23*time.Minute {
			t.Errorf("delivered after %v: an error of the handler counts as an attempt", took)
		}
		r.stop()
	})
}

func TestScheduled(t *testing.T) {
	bubble(t, "SQ-7 SQ-8 first_attempt", func(t *testing.T) {
		var at atomic.Pointer[time.Time]
		var looked atomic.Bool // orders the look at the message below before its delivery
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			if !looked.Load() {
				t.Error("SQ-7: offered too early")
			}
			at.Store(new(time.Now()))
			return deliver(ctx, k)
		})).start()
		msg := r.msg("a@b.example")
		start := time.Now()
		msg.SetScheduling(&mta.Scheduling{FirstAttempt: start.Add(time.Hour)})
		r.insert(msg)
		pass(time.Minute)
		d := r.book.of(mta.Delayed)
		if len(d) != 1 || !strings.HasPrefix(d[0].Response.Content, "Context: Received, ScheduledForLater. Next due in 1h at") {
			t.Fatalf("delayed %+v", d)
		}
		if msg.Size() != 0 {
			t.Error("SQ-9: the body is in memory while the message waits")
		}
		looked.Store(true)
		pass(time.Hour)
		if off := at.Load().Sub(start) - time.Hour; off < 0 || off > resolution {
			t.Errorf("delivered %v after first_attempt", off)
		}
		r.stop()
	})
	bubble(t, "SM-43 null", func(t *testing.T) {
		r := newRig(t, outlet(func(context.Context, *Ticket) error { t.Error("offered"); return nil })).start()
		msg := r.msg("a@b.example")
		if err := msg.SetMeta(context.Background(), mta.MetaQueue, "null"); err != nil {
			t.Fatal(err)
		}
		r.insert(msg, r.msg("a@null"))
		pass(time.Second)
		if r.stored() != 0 || r.m.Len() != 0 || len(r.book.types(spool.ID{})) != 0 {
			t.Error("the queue null left traces")
		}
		r.stop()
	})
	bubble(t, "SQ-10 unhealthy spool", func(t *testing.T) {
		var n tally
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error { n.up(); return deliver(ctx, k) }))
		sick := &sickSpool{Spool: r.data}
		r.m.spools = append(r.m.spools, sick)
		r.start()
		sick.err.Store(new(error(spool.ErrUnhealthy)))
		r.insert(r.msg("a@b.example"))
		pass(time.Minute)
		d := r.book.of(mta.Delayed)
		if len(d) != 1 || d[0].Response.Code != 451 || d[0].Response.Enhanced != holdCode || n.get() != 0 {
			t.Fatalf("delayed %+v, %d offered", d, n.get())
		}
		sick.err.Store(new(error(spool.ErrFull)))
		pass(time.Hour)
		if del := r.book.of(mta.Delivery); len(del) != 1 || del[0].Attempts != 1 {
			t.Errorf("delivery %+v: a full disk must not hold deliveries", del)
		}
		r.stop()
	})
}

// sickSpool says how it feels.
type sickSpool struct {
	spool.Spool
	err atomic.Pointer[error]
}

func (s *sickSpool) Health() error {
	if p := s.err.Load(); p != nil {
		return *p
	}
	return nil
}
