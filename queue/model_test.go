package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta"
	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

// TestModel runs random traffic with a random outlet over spools that fail at random, with restarts, and checks Q1 to Q4
// at the end: every message whose Insert returned nil has exactly one final record and is out of the spool, and none
// that was refused has any record. The seed is in the name of the subtest.
func TestModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprintf("Q1 to Q4 seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runModel(t, seed) })
		})
	}
}

// chaos is a random outlet over random faults; one lock makes the seed decide as far as scheduling allows.
type chaos struct {
	mu    sync.Mutex
	rnd   *rand.Rand
	calm  bool
	wg    sync.WaitGroup
	owned map[spool.ID]bool // delivered: must not be offered again while the process lives
	t     *testing.T
}

func (c *chaos) roll(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calm {
		return 0
	}
	return c.rnd.IntN(n)
}

func (c *chaos) fault(memory.Op, spool.ID) error {
	if c.roll(20) == 7 {
		return errDisk
	}
	return nil
}

// Take delivers now or later, fails, bounces, refuses or returns.
func (c *chaos) Take(ctx context.Context, k *Ticket) error {
	c.mu.Lock()
	if c.owned[k.ID()] {
		c.t.Errorf("%s offered after its end", k.ID())
	}
	c.mu.Unlock()
	switch what := c.roll(9); what {
	case 1:
		return &Busy{}
	case 2:
		return &Unroutable{Response: mta.Response{Code: 451}}
	case 3:
		return errors.New("chaos")
	default:
		wait := time.Duration(c.roll(90)) * time.Second
		id := k.ID()
		c.wg.Go(func() {
			t := time.NewTimer(wait)
			defer t.Stop()
			select {
			case <-t.C:
			case <-ctx.Done():
				what = 4
			}
			c.end(context.Background(), k, id, what)
		})
		return nil
	}
}

func (c *chaos) end(ctx context.Context, k *Ticket, id spool.ID, what int) {
	var err error
	switch what {
	case 4:
		err = k.Return(ctx, Return{Context: "chaos"})
	case 5:
		err = k.Return(ctx, Return{Increment: true, Response: &mta.Response{Code: 400}})
	case 6:
		err = fail(ctx, k)
	case 7:
		c.own(id)
		err = k.Finish(ctx, nil, []mta.Result{{Response: mta.Response{Code: 550}, Disposition: mta.Failed}})
	default:
		c.own(id)
		err = deliver(ctx, k)
	}
	if err != nil {
		c.t.Error(err)
	}
}

func (c *chaos) own(id spool.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owned[id] = true
}

func runModel(t *testing.T, seed uint64) {
	c := &chaos{rnd: rand.New(rand.NewPCG(seed, 1)), t: t}
	accepted, refused := map[spool.ID]bool{}, map[spool.ID]bool{}
	final := map[spool.ID]int{}
	var r *rig
	for round := range 4 {
		c.owned = map[spool.ID]bool{}
		if r == nil {
			r = newRig(t, c)
		} else {
			r = again(t, r, c)
		}
		r.start()
		r.meta.SetFault(c.fault)
		r.data.SetFault(c.fault)
		for range 60 {
			ms := make([]*mta.Message, 1+c.roll(4))
			for i := range ms {
				ms[i] = r.msg(fmt.Sprintf("a@q%d.example", c.roll(5)))
			}
			err := r.m.Insert(context.Background(), ms...)
			for _, msg := range ms {
				if err == nil {
					accepted[msg.ID()] = true
				} else {
					refused[msg.ID()] = true
				}
			}
			pass(time.Duration(c.roll(5000)) * time.Millisecond)
		}
		if round == 3 { // the last one gets everything out
			c.mu.Lock()
			c.calm = true
			c.mu.Unlock()
			for h := 0; h < 8*24 && r.m.Len() > 0; h++ {
				pass(time.Hour)
			}
			if r.m.Len() != 0 {
				t.Errorf("%d messages held in the end", r.m.Len())
			}
		}
		r.meta.SetFault(nil) // removals that are under way at the end succeed
		r.data.SetFault(nil)
		r.stop()
		c.wg.Wait()
		for _, ty := range []mta.RecordType{mta.Delivery, mta.Bounce, mta.Expiration} {
			for _, rec := range r.book.of(ty) {
				final[rec.ID]++
			}
		}
	}
	pass(time.Second)
	r = again(t, r, c).start() // clears data of refused messages whose removal failed
	r.stop()
	if n := r.stored(); n != 0 {
		t.Errorf("%d messages stored in the end", n)
	}
	for id := range accepted {
		if final[id] != 1 {
			t.Errorf("%s has %d final records", id, final[id])
		}
	}
	for id := range refused {
		if final[id] != 0 {
			t.Errorf("refused %s has a record", id)
		}
	}
	if len(accepted) < 200 || len(refused) == 0 {
		t.Errorf("%d accepted, %d refused", len(accepted), len(refused))
	}
}
