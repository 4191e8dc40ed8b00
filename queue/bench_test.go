package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"example.com/svc/mta"
)

// benchRig is a running manager with a recorder that forgets.
func benchRig(b *testing.B, o Outlet) *rig {
	r := newRig(b, o)
	r.opts.Recorder = discard{}
	m, err := New(r.opts)
	if err != nil {
		b.Fatal(err)
	}
	r.m = m
	return r.start()
}

// BenchmarkThrough is the way of a message from Insert over Take to Finish, with 16 receivers and 100 queues.
func BenchmarkThrough(b *testing.B) {
	var n atomic.Int64
	done := make(chan struct{})
	r := benchRig(b, outlet(func(ctx context.Context, k *Ticket) error {
		err := deliver(ctx, k)
		if n.Add(1) == int64(b.N) {
			close(done)
		}
		return err
	}))
	domains := make([]string, 100)
	for i := range domains {
		domains[i] = "q" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + ".example"
	}
	ctx := context.Background()
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := next.Add(1)
			msg := r.store.New(mta.Envelope{Recipients: []mta.Address{{Local: "a", Domain: domains[i%100]}}},
				make([]byte, 100))
			if err := r.m.Insert(ctx, msg); err != nil {
				b.Fatal(err)
			}
		}
	})
	<-done
	b.StopTimer()
	r.stop()
}

// benchmarkSchedule puts a message into the wheel and takes it out again while others wait.
func benchmarkSchedule(b *testing.B, others int) {
	r := newRig(b, outlet(func(context.Context, *Ticket) error { return &Busy{} }))
	m := r.m
	q, err := m.resolve(context.Background(), mta.QueueName{Domain: "b.example"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range others {
		m.timer.insert(slot{q: q}, time.Hour+time.Duration(i)*time.Millisecond)
	}
	buf, _ := m.timer.pop(0, nil)
	now := time.Duration(0)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		now += time.Microsecond
		m.timer.insert(slot{q: q}, now)
		buf, _ = m.timer.pop(now+resolution, buf)
	}
}

func BenchmarkInsertPop1e3(b *testing.B) { benchmarkSchedule(b, 1e3) }
func BenchmarkInsertPop1e6(b *testing.B) { benchmarkSchedule(b, 1e6) }

// BenchmarkFailure is a failed attempt: record, retry schedule, wheel.
func BenchmarkFailure(b *testing.B) {
	r := newRig(b, outlet(fail))
	r.opts.Recorder = discard{}
	m, err := New(r.opts)
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	msg := r.msg("a@b.example")
	if err := msg.Save(ctx); err != nil {
		b.Fatal(err)
	}
	q, err := m.resolve(ctx, mta.QueueName{Domain: "b.example"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for range b.N {
		msg.SetAttempts(0)
		m.lend(ctx, q, item{m: msg, born: m.now()}, q.cfg.Load())
	}
}
