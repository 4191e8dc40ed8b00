package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/spool"
)

// again makes a rig over the spools of old.
func again(t *testing.T, old *rig, o Outlet, edit ...func(*rig)) *rig {
	return newRig(t, o, append(edit, func(r *rig) { r.meta, r.data = old.meta, old.data })...)
}

func TestRecovery(t *testing.T) {
	bubble(t, "Q4 every message is in one queue or has a final record", func(t *testing.T) {
		var taken tally
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			if taken.up()%3 == 0 {
				return deliver(ctx, k)
			}
			return fail(ctx, k)
		})).start()
		alive := map[spool.ID]string{}
		for i := range 1000 {
			msg := r.msg(fmt.Sprintf("a%d@q%d.example", i, i%17))
			alive[msg.ID()] = msg.Envelope().Recipients[0].String()
			r.insert(msg)
		}
		pass(time.Minute)
		for _, rec := range r.book.of(mta.Delivery) {
			delete(alive, rec.ID)
		}
		r.stop()
		if len(alive) != r.stored() || len(alive) == 0 {
			t.Fatalf("%d alive, %d stored", len(alive), r.stored())
		}
		pass(2 * time.Hour)
		got := map[spool.ID]string{}
		r = again(t, r, outlet(func(ctx context.Context, k *Ticket) error {
			id := k.Message.ID()
			if _, ok := got[id]; ok {
				t.Errorf("%s offered twice", id)
			}
			got[id] = k.Message.Envelope().Recipients[0].String()
			if k.Message.Attempts() != 2 {
				t.Errorf("SP-4: %d attempts inferred", k.Message.Attempts())
			}
			if data, err := k.Message.Data(ctx); err != nil || len(data) == 0 {
				t.Errorf("data: %v", err)
			}
			return deliver(ctx, k)
		}), func(r *rig) { r.opts.RecoverWorkers, r.opts.PromoteWorkers = 3, 1 }).start()
		pass(time.Second)
		if !maps.Equal(got, alive) {
			t.Errorf("%d recovered, want %d", len(got), len(alive))
		}
		if len(r.book.of(mta.Delayed)) != 0 || len(r.book.of(mta.Reception)) != 0 || r.stored() != 0 {
			t.Error("SP-3: records of the recovery itself")
		}
		r.stop()
	})
	bubble(t, "SP-5 expired at start", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		r.insert(r.msg("a@b.example"))
		byOwn := r.msg("a@b.example")
		byOwn.SetScheduling(&mta.Scheduling{Expires: time.Now().Add(time.Hour)})
		later := r.msg("a@b.example")
		later.SetScheduling(&mta.Scheduling{Expires: time.Now().Add(30 * 24 * time.Hour),
			FirstAttempt: time.Now().Add(20 * 24 * time.Hour)})
		r.insert(byOwn, later)
		pass(8 * 24 * time.Hour)
		var n tally
		r = again(t, r, outlet(func(ctx context.Context, k *Ticket) error { n.up(); return deliver(ctx, k) })).start()
		pass(time.Second)
		if x := r.book.of(mta.Expiration); len(x) != 2 || r.stored() != 1 || n.get() != 0 {
			t.Errorf("%d expired, %d stored, %d offered", len(x), r.stored(), n.get())
		}
		pass(13 * 24 * time.Hour)
		if n.get() != 1 || r.stored() != 0 {
			t.Errorf("the scheduled message was offered %d times", n.get())
		}
		r.stop()
	})
	bubble(t, "SP-6 a queue that cannot be resolved", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		r.insert(r.msg("a@bad.example"), r.msg("a@good.example"))
		pass(time.Second)
		r = again(t, r, outlet(deliver))
		if err := GetConfig.On(r.bus, func(_ context.Context, n mta.QueueName) (*Config, error) {
			if n.Domain == "bad.example" {
				return nil, errDisk
			}
			return nil, nil
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		pass(24 * time.Hour)
		if r.stored() != 1 || len(r.book.of(mta.Delivery)) != 1 || r.m.Len() != 0 {
			t.Errorf("%d stored, records %v", r.stored(), r.book.types(spool.ID{}))
		}
		r.stop()
	})
	bubble(t, "SP-6 a name that cannot be computed", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		r.insert(r.msg("a@b.example"))
		pass(time.Second)
		r = again(t, r, outlet(deliver))
		if err := OnSpoolEnumerated.On(r.bus, func(ctx context.Context, m *mta.Message) (event.None, error) {
			return event.None{}, m.SetMeta(ctx, mta.MetaQueue, int64(1))
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		pass(time.Second)
		if x := r.book.of(mta.Expiration); len(x) != 1 || x[0].Response.Enhanced != badNameCode || r.stored() != 0 {
			t.Errorf("%+v, %d stored", x, r.stored())
		}
		r.stop()
	})
	bubble(t, "SP-3 spool_message_enumerated moves and ends", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		r.insert(r.msg("a@b.example"))
		pass(time.Second)
		var queue words
		r = again(t, r, outlet(func(ctx context.Context, k *Ticket) error { queue.add(k.Queue); return fail(ctx, k) }))
		var broken error
		handler := func(ctx context.Context, m *mta.Message) (event.None, error) {
			if broken != nil {
				return event.None{}, broken
			}
			return event.None{}, m.SetMeta(ctx, mta.MetaQueue, "other")
		}
		if err := OnSpoolEnumerated.On(r.bus, handler); err != nil {
			t.Fatal(err)
		}
		r.start()
		pass(time.Second)
		if q := queue.all(); len(q) != 1 || q[0] != "other" {
			t.Errorf("queues %q", q)
		}
		r.stop()
		pass(time.Second)
		broken = errors.New("broken policy")
		r = again(t, r, outlet(deliver))
		if err := OnSpoolEnumerated.On(r.bus, handler); err != nil {
			t.Fatal(err)
		}
		if err := r.m.Run(context.Background()); !errors.Is(err, broken) {
			t.Errorf("Run: %v", err)
		}
		if r.stored() != 1 {
			t.Errorf("%d stored", r.stored())
		}
	})
	bubble(t, "Q4 inserted during the recovery with an old ID", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		old := r.msg("a@b.example")
		pass(time.Hour)
		var n tally
		r2 := again(t, r, outlet(func(ctx context.Context, k *Ticket) error { n.up(); return fail(ctx, k) }))
		r2.insert(old) // before Run, which finds it in the store
		r2.start()
		pass(time.Second)
		if n.get() != 1 || r2.m.Len() != 1 {
			t.Errorf("offered %d times, %d held", n.get(), r2.m.Len())
		}
		r2.stop()
	})
}
