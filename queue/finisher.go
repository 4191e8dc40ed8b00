package queue

import (
	"context"
	"sync"
	"time"

	"example.com/svc/mta"
	"example.com/svc/spool"
)

// finishBatch is how many removals share one commit, and how many wait at most.
const finishBatch = 256

// lastTries is how often a removal is tried again while shutting down.
const lastTries = 3

// removal is a message that has to leave the spool.
type removal struct {
	id   spool.ID
	q    *scheduled
	lent bool // a ticket is out for it
	// recs are records that were not accepted so far, about msg.
	recs []*mta.Record
	msg  *mta.Message
}

// dataLanes is how many batches of data may wait to be removed after their metadata.
const dataLanes = 4

// finisher removes messages from the spool, many with one commit. A message in its hands is never delivered again. It is
// done with a message when the metadata is removed (Q4); the data follow behind, so that the next batch need not wait.
type finisher struct {
	m  *Manager
	in chan removal
}

func newFinisher(m *Manager) *finisher { return &finisher{m: m, in: make(chan removal, finishBatch)} }

// run works until in is closed. After ctx ended it gives up on what fails a few times more.
func (f *finisher) run(ctx context.Context) {
	data := make(chan []spool.ID, dataLanes)
	var follower sync.WaitGroup
	follower.Go(func() { f.removeData(ctx, data) })
	defer follower.Wait()
	defer close(data)
	batch := make([]removal, 0, finishBatch)
	for r := range f.in {
		batch = append(batch[:0], r)
		batch = f.more(batch)
		f.writeDown(ctx, batch)
		ids := make([]spool.ID, 0, len(batch))
		for i := range batch {
			if batch[i].msg == nil {
				ids = append(ids, batch[i].id)
			}
		}
		removed := f.retry(ctx, "messages not removed", func(ctx context.Context) error {
			return f.m.o.Store.RemoveMeta(ctx, ids)
		})
		if removed {
			data <- ids
		}
		for i := range batch {
			f.m.release(batch[i].q)
			if batch[i].lent {
				f.m.home()
			}
		}
		clear(batch)
	}
}

// removeData removes the data of messages whose metadata is gone. What stays is removed at the next start.
func (f *finisher) removeData(ctx context.Context, data <-chan []spool.ID) {
	for ids := range data {
		for more := true; more && len(ids) < finishBatch*dataLanes; {
			select {
			case next, ok := <-data:
				ids, more = append(ids, next...), ok
			default:
				more = false
			}
		}
		f.retry(ctx, "data of messages not removed", func(ctx context.Context) error {
			return f.m.o.Store.RemoveData(ctx, ids)
		})
	}
}

// more adds what waits.
func (f *finisher) more(batch []removal) []removal {
	for len(batch) < finishBatch {
		select {
		case r, ok := <-f.in:
			if !ok {
				return batch
			}
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// writeDown gets missing records accepted (Q2). What cannot be recorded until the end stays in the spool, with msg set.
func (f *finisher) writeDown(ctx context.Context, batch []removal) {
	for i := range batch {
		r := &batch[i]
		if r.msg == nil {
			continue
		}
		ok := f.retry(ctx, "record not accepted", func(ctx context.Context) error {
			for len(r.recs) > 0 {
				if err := f.m.o.Recorder.Record(ctx, r.msg, r.recs[0]); err != nil {
					return err
				}
				r.recs = r.recs[1:]
			}
			return nil
		})
		r.msg.Release()
		if ok {
			r.msg = nil
		}
	}
}

// retry calls do until it succeeds, with growing pauses. After ctx ended it tries lastTries times more and reports
// false when none succeeds.
func (f *finisher) retry(ctx context.Context, what string, do func(context.Context) error) bool {
	const first, longest = 100 * time.Millisecond, 10 * time.Second
	free := context.WithoutCancel(ctx)
	pause, last := first, 0
	for last <= lastTries {
		err := do(free)
		if err == nil {
			return true
		}
		f.m.log.Error(what, "err", err, "retry_in", pause)
		if ctx.Err() != nil {
			last++
			sleep(free, first)
			continue
		}
		sleep(ctx, pause)
		pause = min(pause*2, longest)
	}
	f.m.log.Error("given up while shutting down; messages may be delivered again", "what", what)
	return false
}

// sleep returns after d, or when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
