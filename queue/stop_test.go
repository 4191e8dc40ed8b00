package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/spool"
)

func TestShutdown(t *testing.T) {
	bubble(t, "SD-3 Q3 tickets come home", func(t *testing.T) {
		var mu sync.Mutex
		var out []*Ticket
		r := newRig(t, outlet(func(_ context.Context, k *Ticket) error {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, k)
			return nil
		})).start()
		for i := range 4 {
			r.insert(r.msg(fmt.Sprintf("a@q%d.example", i)))
		}
		later := r.msg("a@later.example")
		later.SetScheduling(&mta.Scheduling{FirstAttempt: time.Now().Add(time.Hour)})
		r.insert(later)
		pass(time.Second)
		if len(out) != 4 {
			t.Fatalf("%d out", len(out))
		}
		r.cancel()
		pass(time.Second)
		select {
		case <-r.done:
			t.Fatal("Run ended with tickets out")
		default:
		}
		var refusal *mta.Refusal
		if err := r.m.Insert(context.Background(), r.msg("a@b.example")); !errors.As(err, &refusal) {
			t.Errorf("Insert while shutting down: %v", err)
		}
		ctx := context.Background()
		records := len(r.book.types(spool.ID{}))
		for i, k := range out {
			var err error
			switch i {
			case 0:
				err = deliver(ctx, k)
			case 1:
				err = fail(ctx, k)
			default:
				err = k.Return(ctx, Return{Context: "shutting down"})
			}
			if err != nil {
				t.Error(err)
			}
		}
		r.stop()
		if r.stored() != 4 {
			t.Errorf("%d stored, want 4", r.stored())
		}
		if got := len(r.book.types(spool.ID{})) - records; got != 2 {
			t.Errorf("%d records at shutdown, want Delivery and TransientFailure", got)
		}
	})
	bubble(t, "SD-3 returned at once: no records, no questions", func(t *testing.T) {
		var wg sync.WaitGroup
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			wg.Go(func() {
				<-ctx.Done()
				if err := k.Return(context.Background(), Return{Context: "shutting down", HasDelay: true}); err != nil {
					t.Error(err)
				}
			})
			return nil
		}))
		if err := OnRequeue.On(r.bus, func(context.Context, RequeueMessage) (event.None, error) {
			t.Error("requeue_message was raised")
			return event.None{}, nil
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		for i := range 50 {
			r.insert(r.msg(fmt.Sprintf("a@q%d.example", i%7)))
		}
		pass(time.Second)
		r.stop()
		wg.Wait()
		if n := len(r.book.types(spool.ID{})); n != 50 || r.stored() != 50 {
			t.Errorf("%d records, %d stored", n, r.stored())
		}
	})
	bubble(t, "SD-3 dirty messages are saved", func(t *testing.T) {
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			if err := k.Message.SetMeta(ctx, "x_seen", true); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return ctx.Err()
		})).start()
		msg := r.msg("a@b.example")
		r.insert(msg)
		pass(time.Second)
		r.stop()
		m, err := r.store.Load(context.Background(), msg.ID())
		if err != nil {
			t.Fatal(err)
		}
		if meta, _ := m.Meta(context.Background()); meta.Len() != 1 {
			t.Error("a change of the metadata was lost")
		}
	})
}

func TestWallClockJump(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, -time.Hour, 10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour} {
		bubble(t, fmt.Sprintf("jump by %v", jump), func(t *testing.T) {
			var off atomic.Int64
			var offered tally
			r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error { offered.up(); return fail(ctx, k) }))
			r.m.wall = func() time.Time { return time.Now().Add(time.Duration(off.Load())) }
			r.start()
			for range 10 {
				r.insert(r.msg("a@b.example"))
			}
			pass(time.Minute)
			off.Store(int64(jump))
			pass(30 * time.Minute)
			if offered.get() != 20 || len(r.book.of(mta.Expiration)) != 0 {
				t.Errorf("%d offered, %d expired", offered.get(), len(r.book.of(mta.Expiration)))
			}
			off.Store(0)
			pass(time.Hour)
			if offered.get() != 30 || len(r.book.of(mta.Expiration)) != 0 {
				t.Errorf("%d offered, %d expired after the clock went back", offered.get(), len(r.book.of(mta.Expiration)))
			}
			r.stop()
		})
	}
}
