package egress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"example.com/svc/egress/route"
	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/limit"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
	"example.com/svc/queue"
)

// SMTPClient is the protocol name of delivery over SMTP (flows QN-3).
const SMTPClient = "smtp_client"

// Options are what a Manager works with.
type Options struct {
	// Bus has the handlers of the policy; nil has none.
	Bus event.Bus
	// Planner finds hosts; required.
	Planner *route.Planner
	// Openers open connections, by protocol; required is [SMTPClient].
	Openers map[string]Opener
	// Keeper counts rates and leases; nil counts in this process.
	Keeper limit.Keeper
	// Classify names the bounce class of a response; nil when there are no classes.
	Classify func(mta.Response) string
	// Epoch is the version of the configuration; nil never changes.
	Epoch *settings.Epoch
	// Metrics counts; nil counts unseen.
	Metrics *metric.Set
	// Log takes what has to be told; nil is the default logger.
	Log *slog.Logger
	// Hostname is the name this host goes by where neither path nor source has one; empty asks the system.
	Hostname string
}

// Manager carries messages out. It is safe for concurrent use. Make one with [New].
type Manager struct {
	o       Options
	catalog catalog
	metrics *metrics
	log     *slog.Logger

	// stop ends when shutdown begins; connections are not opened after. work ends when all is done.
	stop, work       context.Context
	endStop, endWork context.CancelCauseFunc
	dispatchers      sync.WaitGroup
	mu               sync.Mutex // guards the fields below
	state            life
	queues           map[readyKey]*ready
	making           map[readyKey]chan struct{}
	attention        map[*ready]struct{} // limited: to be looked at with the next tick
}

var _ queue.Outlet = (*Manager)(nil)

// life is the state of a Manager.
type life uint8

const (
	idling life = iota // before Run: tickets are taken and wait
	running
	stopping
)

// Causes why work in hand is given up.
var (
	errShutdown = errors.New("shutting down")
	errWatchdog = errors.New("session made no progress")
)

// Reasons of this package why a message goes back to its scheduled queue.
const (
	contextShutdown = "ShuttingDown"
	contextWatchdog = "DispatcherWatchdogAborted"
)

// New returns a Manager. Tickets that it takes wait until [Manager.Run] runs.
func New(o Options) (*Manager, error) {
	if o.Planner == nil {
		return nil, errors.New("egress: a manager needs a planner")
	}
	if o.Openers[SMTPClient] == nil {
		return nil, fmt.Errorf("egress: a manager needs an opener for %s", SMTPClient)
	}
	if o.Keeper == nil {
		o.Keeper = limit.NewLocal()
	}
	if o.Epoch == nil {
		o.Epoch = new(settings.Epoch)
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Hostname == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("egress: the name of this host: %w", err)
		}
		o.Hostname = name
	}
	m := &Manager{
		o:         o,
		catalog:   catalog{bus: o.Bus, epoch: o.Epoch},
		metrics:   newMetrics(o.Metrics),
		log:       o.Log,
		queues:    make(map[readyKey]*ready),
		making:    make(map[readyKey]chan struct{}),
		attention: make(map[*ready]struct{}),
	}
	m.stop, m.endStop = context.WithCancelCause(context.Background())
	m.work, m.endWork = context.WithCancelCause(context.Background())
	return m, nil
}

// Run delivers until ctx ends. Then it opens no more connections, returns what waits to the scheduled queues, lets
// deliveries in hand end within system_shutdown_timeout, says QUIT, and returns nil once every dispatcher has ended
// (flows SD-2, SD-3). It may be called once.
func (m *Manager) Run(ctx context.Context) error {
	m.mu.Lock()
	if m.state != idling {
		m.mu.Unlock()
		return errors.New("egress: Run was called before")
	}
	m.state = running
	m.mu.Unlock()
	for _, q := range m.list() {
		q.kick() // what was taken before
	}
	m.upkeep(ctx)
	m.shutdown()
	return nil
}

// shutdown ends everything in order.
func (m *Manager) shutdown() {
	m.mu.Lock()
	m.state = stopping
	m.mu.Unlock()
	m.endStop(errShutdown)
	var timers []*time.Timer
	for _, q := range m.list() {
		timers = append(timers, q.close()...)
	}
	m.dispatchers.Wait()
	for _, t := range timers {
		t.Stop()
	}
	m.endWork(errShutdown)
}

// close sends what waits back and gives the dispatchers their last term.
func (q *ready) close() []*time.Timer {
	q.mu.Lock()
	q.closed = true
	term := q.state.Load().c.shutdownTimeout()
	timers := make([]*time.Timer, 0, len(q.dispatchers))
	for d := range q.dispatchers {
		timers = append(timers, time.AfterFunc(term, func() { d.abort(errShutdown) }))
	}
	q.mu.Unlock()
	giveBack(q.m.work, q.drain(0), queue.Return{Context: contextShutdown, HasDelay: true})
	return timers
}

// spawn starts a dispatcher of q. False when nothing may start.
func (m *Manager) spawn(q *ready) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state != running {
		return false
	}
	m.dispatchers.Go(func() { newDispatcher(q).run() }) // G1
	return true
}

// list returns the ready queues.
func (m *Manager) list() []*ready {
	m.mu.Lock()
	defer m.mu.Unlock()
	qs := make([]*ready, 0, len(m.queues))
	for _, q := range m.queues {
		qs = append(qs, q)
	}
	return qs
}

// needsAttention has q looked at with the next tick.
func (m *Manager) needsAttention(q *ready) {
	m.mu.Lock()
	m.attention[q] = struct{}{}
	m.mu.Unlock()
}

// ReadyQueue is a ready queue at one moment.
type ReadyQueue struct {
	// Name is "source->site@protocol", made of Source, Site and Protocol.
	Name, Source, Site, Protocol string
	// Waiting is the number of messages that wait.
	Waiting int
	// Sessions is the number of dispatchers, Idle of those without a message.
	Sessions, Idle int
	// Limited says that a connection limit keeps further sessions from opening.
	Limited bool
	// LastUse is when a message last came or a session last ended.
	LastUse time.Time
	// Config is what the queue obeys; read-only.
	Config *PathConfig
}

// ReadyQueues returns the ready queues, in no particular order.
func (m *Manager) ReadyQueues() []ReadyQueue {
	qs := m.list()
	out := make([]ReadyQueue, len(qs))
	for i, q := range qs {
		q.mu.Lock()
		out[i] = ReadyQueue{
			Name: q.name, Source: q.key.source, Site: q.key.site, Protocol: q.key.protocol,
			Waiting: q.waiting.n, Sessions: len(q.dispatchers), Idle: len(q.idle), Limited: q.limited,
			LastUse: q.lastUse, Config: q.state.Load().c,
		}
		q.mu.Unlock()
	}
	return out
}
