package queue

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/limit"
	"example.com/svc/spool"
)

// Manager holds all scheduled queues. Make one with [New]. Its methods are safe for concurrent use; [Manager.Run] is
// called once.
type Manager struct {
	o      Options
	log    *slog.Logger
	ins    *instruments
	reg    *registry
	run    runList
	fin    *finisher
	spools []spool.Healther

	timer *timer
	start time.Time        // zero of the manager's clock
	wall  func() time.Time // the wall clock, which may jump

	held      atomic.Int64 // messages in all queues
	scheduled atomic.Int64
	resident  atomic.Int64 // bytes
	lent      atomic.Int64
	tickets   sync.WaitGroup

	gate      gate
	early     early
	recovered chan struct{}
	ran       atomic.Bool
	stop      <-chan struct{} // closed when Run begins to end; set before anything runs
}

// New makes a manager. Messages may be inserted at once; they are delivered while [Manager.Run] runs. The error says
// what is missing in o.
func New(o Options) (*Manager, error) {
	switch {
	case o.Store == nil:
		return nil, errors.New("queue: no store")
	case o.Outlet == nil:
		return nil, errors.New("queue: no outlet")
	case o.Recorder == nil:
		return nil, errors.New("queue: no recorder")
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Keeper == nil {
		o.Keeper = limit.NewLocal()
	}
	if o.PromoteWorkers <= 0 {
		o.PromoteWorkers = 128
	}
	if o.RecoverWorkers <= 0 {
		o.RecoverWorkers = max(runtime.GOMAXPROCS(0)/2, 1)
	}
	if o.ResidentBytes <= 0 {
		o.ResidentBytes = 64 << 20
	}
	m := &Manager{o: o, log: o.Log, ins: newInstruments(o.Metrics), reg: newRegistry(), timer: newTimer(),
		start: time.Now(), wall: time.Now, recovered: make(chan struct{})}
	m.run.max, m.run.serve = o.PromoteWorkers, m.serve
	m.fin = newFinisher(m)
	m.early.before = m.start
	for _, s := range []spool.Spool{o.Store.Meta, o.Store.Data} {
		if h, ok := s.(spool.Healther); ok {
			m.spools = append(m.spools, h)
		}
	}
	m.expose(o.Metrics)
	return m, nil
}

// now is the manager's clock: nanoseconds since it was made, by the monotonic clock.
func (m *Manager) now() int64 { return int64(time.Since(m.start)) }

// Len returns the number of messages in all queues, lent ones included.
func (m *Manager) Len() int { return int(m.held.Load()) }

// Recovered is closed when every message found at start is in a queue or has a final record (Q4).
func (m *Manager) Recovered() <-chan struct{} { return m.recovered }

// Run recovers the messages of the store and delivers until ctx ends. Then it refuses inserts, waits until every ticket
// was finished or returned and every removal is committed, saves what is not saved, and drops all messages from memory
// (flows SD-3). The outlet has to give its tickets back at the same time. The error is that of a recovery that failed,
// which ends Run; nil after ctx ended.
func (m *Manager) Run(ctx context.Context) error {
	if m.ran.Swap(true) {
		return errors.New("queue: Run was called before")
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	m.stop = ctx.Done()
	var finisher, others sync.WaitGroup
	finisher.Go(func() { m.fin.run(ctx) })
	others.Go(func() { m.drive(ctx) })
	others.Go(func() { m.maintain(ctx) })
	var recovery error
	others.Go(func() {
		if recovery = m.recover(ctx); recovery != nil {
			cancel(recovery)
		}
	})
	m.run.start(ctx)
	<-ctx.Done()

	m.gate.close() // 1. no inserts
	others.Wait()  // 2. no popping, no recovery
	m.run.stop()   // 3. no promotion
	m.tickets.Wait()
	close(m.fin.in) // 4. all tickets are home, nothing more to remove
	finisher.Wait()
	m.drop() // 5. nobody else holds a message
	return recovery
}

// stopping reports whether Run is ending. It is asked by whoever came by a ticket or a worker, that is, after Run began.
func (m *Manager) stopping() bool {
	select {
	case <-m.stop:
		return true
	default:
		return false
	}
}

// gate counts inserts under way and closes.
type gate struct {
	mu     sync.Mutex
	idle   chan struct{} // set while closing
	n      int
	closed bool
}

// enter reports whether an insert may begin.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.n++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.n == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// close refuses further inserts and waits for those under way.
func (g *gate) close() {
	g.mu.Lock()
	g.closed = true
	var wait chan struct{}
	if g.n > 0 {
		wait = make(chan struct{})
		g.idle = wait
	}
	g.mu.Unlock()
	if wait != nil {
		<-wait
	}
}

// drop saves what is not saved and forgets all messages.
func (m *Manager) drop() {
	ctx := context.Background()
	m.timer.drain(func(s slot) {
		if s.it.m != nil {
			m.counted(s.q, -1)
			m.forget(ctx, s.q, s.it)
		}
	})
	buf := make([]item, 0, serveBatch)
	m.reg.each(func(q *scheduled) {
		for its := q.take(buf); len(its) > 0; its = q.take(buf) {
			for _, it := range its {
				m.counted(q, -1)
				m.forget(ctx, q, it)
			}
		}
	})
}

// forget saves a message if needed and drops it from memory. One that cannot be saved stays in the store as it was.
func (m *Manager) forget(ctx context.Context, q *scheduled, it item) {
	if it.m.Dirty() {
		if err := it.m.Save(ctx); err != nil {
			m.log.Error("message not saved at shutdown", "id", it.m.ID().String(), "queue", q.text, "err", err)
		}
	}
	m.unaccount(&it)
	it.m.Release()
	m.release(q)
}

// account counts the body of a new pending message, or drops it from memory when the budget is used up.
func (m *Manager) account(ctx context.Context, it *item) {
	size := int64(it.m.Size())
	if size == 0 {
		return
	}
	if m.resident.Add(size) <= m.o.ResidentBytes && size < 1<<32 {
		it.resident = uint32(size)
		return
	}
	m.resident.Add(-size)
	m.shrink(ctx, it.m, ShrinkDataAndMeta)
}

// unaccount ends what account began.
func (m *Manager) unaccount(it *item) {
	if it.resident != 0 {
		m.resident.Add(-int64(it.resident))
		it.resident = 0
	}
}

// shrink saves msg if needed and releases memory. A save that fails leaves it all in memory, to be saved later.
func (m *Manager) shrink(ctx context.Context, msg *mta.Message, p Shrink) {
	ctx = context.WithoutCancel(ctx) // it has to be saved, whoever has lost patience
	var err error
	switch p {
	case NoShrink:
		if msg.Dirty() {
			err = msg.Save(ctx)
		}
	case ShrinkData:
		err = msg.ShrinkData(ctx)
	default:
		err = msg.Shrink(ctx)
	}
	if err != nil {
		m.log.Warn("message stays in memory: it cannot be saved", "id", msg.ID().String(), "err", err)
	}
}
