package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

var errDisk = errors.New("disk on fire")

// TestInsertFaults fails every write of an insert in turn.
func TestInsertFaults(t *testing.T) {
	for nth := 1; nth <= 6; nth++ {
		bubble(t, fmt.Sprintf("Q1 write %d fails", nth), func(t *testing.T) {
			var offered tally
			r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error {
				offered.up()
				return deliver(ctx, k)
			})).start()
			var n tally
			broken := func(op memory.Op, _ spool.ID) error {
				if op == memory.OpPut {
					if n.up() == nth {
						return errDisk
					}
				}
				return nil
			}
			r.data.SetFault(broken)
			r.meta.SetFault(broken)
			ms := []*mta.Message{r.msg("a@b.example"), r.msg("a@b.example"), r.msg("a@c.example")}
			err := r.m.Insert(context.Background(), ms...)
			var refused *mta.InsertError
			if !errors.As(err, &refused) || !errors.Is(err, errDisk) || refused.Err == nil {
				t.Fatalf("Insert: %v", err)
			}
			pass(time.Minute)
			if r.stored() != 0 || len(r.book.types(spool.ID{})) != 0 || offered.get() != 0 || r.m.Len() != 0 {
				t.Errorf("%d stored, records %v, %d offered", r.stored(), r.book.types(spool.ID{}), offered.get())
			}
			r.insert(ms...) // they still belong to the caller, and the fault is over
			pass(time.Second)
			if offered.get() != 3 || r.stored() != 0 {
				t.Errorf("%d offered, %d stored", offered.get(), r.stored())
			}
			r.stop()
		})
	}
}

func TestResolveFaults(t *testing.T) {
	bubble(t, "SQ-1 error cached for 60 s, nothing stored", func(t *testing.T) {
		var asked tally
		var broken error = errors.New("policy broken")
		r := newRig(t, outlet(deliver))
		if err := GetConfig.On(r.bus, func(_ context.Context, n mta.QueueName) (*Config, error) {
			if n.Domain != "b.example" {
				return nil, nil
			}
			asked.up()
			return nil, broken
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		good, bad := r.msg("a@good.example"), r.msg("a@b.example")
		for range 3 {
			err := r.m.Insert(context.Background(), good, bad)
			var refused *mta.InsertError
			if !errors.As(err, &refused) || refused.Failed[1] == nil || !errors.Is(err, broken) {
				t.Fatalf("Insert: %v", err)
			}
		}
		if asked.get() != 1 || r.stored() != 0 || len(r.book.types(spool.ID{})) != 0 {
			t.Errorf("asked %d times, %d stored", asked.get(), r.stored())
		}
		broken = nil
		pass(61 * time.Second)
		r.insert(good, bad)
		if asked.get() != 2 {
			t.Errorf("asked %d times", asked.get())
		}
		pass(time.Second)
		r.stop()
	})
	bubble(t, "SQ-1 one resolver at a time", func(t *testing.T) {
		var asked tally
		r := newRig(t, outlet(deliver))
		if err := GetConfig.On(r.bus, func(context.Context, mta.QueueName) (*Config, error) {
			asked.up()
			time.Sleep(time.Second)
			return defaultConfig(), nil
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		var wg sync.WaitGroup
		for range 20 {
			msg := r.msg("a@b.example")
			wg.Go(func() { r.insert(msg) })
		}
		wg.Wait()
		pass(time.Second)
		if asked.get() != 1 || len(r.book.of(mta.Delivery)) != 20 {
			t.Errorf("asked %d times, %d delivered", asked.get(), len(r.book.of(mta.Delivery)))
		}
		r.stop()
	})
	bubble(t, "SQ-1 an impatient resolver does not spoil it for others", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		if err := GetConfig.On(r.bus, func(ctx context.Context, _ mta.QueueName) (*Config, error) {
			select {
			case <-time.After(time.Second):
				return defaultConfig(), nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}); err != nil {
			t.Fatal(err)
		}
		r.start()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		hasty, calm := r.msg("a@b.example"), r.msg("a@b.example")
		go func() {
			if err := r.m.Insert(ctx, hasty); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("hasty insert: %v", err)
			}
		}()
		pass(time.Millisecond)
		r.insert(calm)
		pass(time.Second)
		r.stop()
	})
}

func TestQ2(t *testing.T) {
	bubble(t, "Q2 the removal waits for the record", func(t *testing.T) {
		var offered tally
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error { offered.up(); return deliver(ctx, k) }))
		r.book.fail = func(rec *mta.Record) error {
			if rec.Type == mta.Delivery {
				return errDisk
			}
			return nil
		}
		r.start()
		r.insert(r.msg("a@b.example"))
		pass(time.Minute)
		if r.stored() != 1 || offered.get() != 1 || r.m.Len() != 1 {
			t.Fatalf("%d stored, %d offered", r.stored(), offered.get())
		}
		r.book.mu.Lock()
		r.book.fail = nil
		r.book.mu.Unlock()
		pass(time.Minute)
		if r.stored() != 0 || offered.get() != 1 || len(r.book.of(mta.Delivery)) != 1 {
			t.Errorf("%d stored, %d offered, %d recorded", r.stored(), offered.get(), len(r.book.of(mta.Delivery)))
		}
		r.stop()
	})
	bubble(t, "Q2 shutdown while the record is not accepted keeps the message", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		r.book.fail = func(rec *mta.Record) error {
			if rec.Type == mta.Delivery {
				return errDisk
			}
			return nil
		}
		r.start()
		r.insert(r.msg("a@b.example"), r.msg("a@c.example"))
		pass(time.Second)
		r.stop()
		if r.stored() != 2 {
			t.Errorf("%d stored", r.stored())
		}
	})
	bubble(t, "removal fails for a while: never offered again", func(t *testing.T) {
		var offered tally
		r := newRig(t, outlet(func(ctx context.Context, k *Ticket) error { offered.up(); return deliver(ctx, k) })).start()
		r.meta.SetFault(func(op memory.Op, _ spool.ID) error {
			if op == memory.OpDelete {
				return errDisk
			}
			return nil
		})
		r.insert(r.msg("a@b.example"))
		pass(3 * time.Hour)
		if offered.get() != 1 || r.meta.Len() != 1 || r.m.Stats().Lent != 1 {
			t.Errorf("%d offered, %d stored, %+v", offered.get(), r.meta.Len(), r.m.Stats())
		}
		r.meta.SetFault(nil)
		pass(time.Minute)
		if r.stored() != 0 || offered.get() != 1 || len(r.book.of(mta.Delivery)) != 1 {
			t.Errorf("%d stored, %d offered", r.stored(), offered.get())
		}
		r.stop()
	})
}

// hastySpool stores and then says that the caller had no patience.
type hastySpool struct {
	*memory.Spool
	cancel context.CancelFunc
}

func (s *hastySpool) Put(ctx context.Context, id spool.ID, value []byte) error {
	if err := s.Spool.Put(ctx, id, value); err != nil {
		return err
	}
	s.cancel()
	return ctx.Err()
}

func TestInsertCancelled(t *testing.T) {
	bubble(t, "Q1 a save of unknown outcome is undone", func(t *testing.T) {
		r := newRig(t, outlet(deliver))
		ctx, cancel := context.WithCancel(context.Background())
		store := mta.NewStore(&hastySpool{r.meta, cancel}, r.data, nil, r.opts.Log)
		r.opts.Store = store
		m, err := New(r.opts)
		if err != nil {
			t.Fatal(err)
		}
		msg := store.New(mta.Envelope{Recipients: []mta.Address{{Local: "a", Domain: "b.example"}}}, []byte("x"))
		if err := m.Insert(ctx, msg); !errors.Is(err, context.Canceled) {
			t.Fatalf("Insert: %v", err)
		}
		if r.stored() != 0 || m.Len() != 0 {
			t.Errorf("%d stored", r.stored())
		}
	})
}
