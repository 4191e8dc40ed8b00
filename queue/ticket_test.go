package queue

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

func TestQ3(t *testing.T) {
	bubble(t, "Q3 a ticket ends once", func(t *testing.T) {
		var kept *Ticket
		r := newRig(t, outlet(func(_ context.Context, k *Ticket) error { kept = k; return nil })).start()
		r.insert(r.msg("a@b.example"))
		pass(time.Second)
		ctx := context.Background()
		if r.m.Stats().Lent != 1 {
			t.Fatalf("%+v", r.m.Stats())
		}
		if err := deliver(ctx, kept); err != nil {
			t.Fatal(err)
		}
		var twice *TicketError
		for _, err := range []error{deliver(ctx, kept), kept.Return(ctx, Return{}), kept.Corrupt(ctx, errDisk)} {
			if !errors.As(err, &twice) {
				t.Errorf("second end: %v", err)
			}
		}
		pass(time.Second)
		if len(r.book.of(mta.Delivery)) != 1 || len(r.book.types(spool.ID{})) != 2 || r.m.Len() != 0 {
			t.Errorf("records %v", r.book.types(spool.ID{}))
		}
		r.stop()
	})
	bubble(t, "Q3 refused after it was ended", func(t *testing.T) {
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			_ = deliver(ctx, k)
			return &Busy{}
		})).start()
		r.insert(r.msg("a@b.example"))
		pass(time.Hour)
		if len(r.book.of(mta.Delivery)) != 1 || r.stored() != 0 {
			t.Errorf("records %v", r.book.types(spool.ID{}))
		}
		r.stop()
	})
}

func TestPartialFinish(t *testing.T) {
	bubble(t, "SC-25 SC-28", func(t *testing.T) {
		var n tally
		addr := func(s string) mta.Address { a, _ := mta.ParseAddress(s); return a }
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			if n.up() > 1 {
				return deliver(ctx, k)
			}
			return k.Finish(ctx, nil, []mta.Result{
				{Recipients: []mta.Address{addr("a@b.example")}, Response: mta.Response{Code: 250}},
				{Recipients: []mta.Address{addr("b@b.example")}, Response: mta.Response{Code: 550}, Disposition: mta.Failed},
				{Recipients: []mta.Address{addr("c@b.example"), addr("d@b.example")},
					Response: mta.Response{Code: 451}, Disposition: mta.Transient},
			})
		})).start()
		msg := r.msg("a@b.example", "b@b.example", "c@b.example", "d@b.example")
		id := msg.ID()
		r.insert(msg)
		pass(time.Minute)
		saved, err := r.store.Load(context.Background(), id)
		if err != nil || len(saved.Envelope().Recipients) != 2 {
			t.Fatalf("saved %+v, %v", saved, err)
		}
		pass(time.Hour)
		want := []mta.RecordType{mta.Reception, mta.Delivery, mta.Bounce, mta.TransientFailure, mta.Delivery}
		if got := r.book.types(id); !slices.Equal(got, want) {
			t.Errorf("records %v", got)
		}
		if d := r.book.of(mta.Delivery); !slices.Equal(d[1].Recipients, []string{"c@b.example", "d@b.example"}) ||
			d[1].Attempts != 1 {
			t.Errorf("delivery %+v", d[1])
		}
		if r.stored() != 0 {
			t.Error("still stored")
		}
		r.stop()
	})
}

func TestReturn(t *testing.T) {
	bubble(t, "returns", func(t *testing.T) {
		var n tally
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			switch n.up() {
			case 1: // not attempted
				return k.Return(ctx, Return{Context: ConnectionRateThrottled, Delay: time.Minute, HasDelay: true})
			case 2: // right back
				return k.Return(ctx, Return{Context: ReadyQueueWasSuspended, HasDelay: true})
			case 3: // whole plan failed
				return k.Return(ctx, Return{Increment: true, Response: &mta.Response{Code: 400, Content: "no hosts"},
					Record: &mta.Record{Site: "site"}})
			}
			return deliver(ctx, k)
		})).start()
		msg := r.msg("a@b.example")
		id := msg.ID()
		r.insert(msg)
		pass(time.Hour)
		want := []mta.RecordType{mta.Reception, mta.Delayed, mta.TransientFailure, mta.Delivery}
		if got := r.book.types(id); !slices.Equal(got, want) {
			t.Fatalf("records %v", got)
		}
		if f := r.book.of(mta.TransientFailure)[0]; f.Site != "site" || f.Attempts != 0 || f.Response.Code != 400 {
			t.Errorf("failure %+v", f)
		}
		if d := r.book.of(mta.Delivery)[0]; d.Attempts != 1 {
			t.Errorf("delivery %+v", d)
		}
		r.stop()
	})
}

func TestCorrupt(t *testing.T) {
	bubble(t, "unreadable data", func(t *testing.T) {
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
			if err := k.Message.ShrinkData(ctx); err != nil {
				t.Error(err)
			}
			_, err := k.Message.Data(ctx)
			var bad *spool.CorruptError
			if !errors.As(err, &bad) {
				t.Errorf("Data: %v", err)
			}
			return k.Corrupt(ctx, err)
		}))
		msg := r.msg("a@b.example")
		r.insert(msg)
		r.data.Corrupt(msg.ID())
		r.start()
		pass(time.Second)
		b := r.book.of(mta.Bounce)
		if len(b) != 1 || b[0].Response.Code != 550 || b[0].Response.Enhanced != corruptCode {
			t.Errorf("bounce %+v", b)
		}
		aside, _ := r.data.Quarantined(context.Background())
		if r.stored() != 0 || aside != 1 || r.m.Len() != 0 {
			t.Errorf("%d stored, %d set aside", r.stored(), aside)
		}
		r.stop()
	})
	bubble(t, "unreadable data that cannot be set aside stay in the spool", func(t *testing.T) {
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error { return k.Corrupt(ctx, errDisk) }))
		r.insert(r.msg("a@b.example"))
		r.data.SetFault(func(op memory.Op, _ spool.ID) error {
			if op == memory.OpPut {
				return errDisk
			}
			return nil
		})
		r.start()
		pass(time.Second)
		if r.stored() != 1 || r.m.Len() != 0 || len(r.book.of(mta.Bounce)) != 0 {
			t.Errorf("%d stored, %d in memory, bounces %v", r.stored(), r.m.Len(), r.book.of(mta.Bounce))
		}
		r.stop()
	})
}
