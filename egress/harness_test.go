package egress

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/egress/route"
	"example.com/svc/mta"
	"example.com/svc/mta/dns/dnstest"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
	"example.com/svc/queue"
	"example.com/svc/spool/memory"
)

const zone = `
$ORIGIN test.
$TTL 3600
@     SOA ns.test. root.test. 1 3600 600 86400 60
one   MX 10 mx1
two   MX 10 mx1
two   MX 20 mx2
far   MX 10 mx3
null  MX 0 .
loop  MX 10 here
mx1   A 192.0.2.1
mx2   A 192.0.2.2
mx3   A 192.0.2.3
here  A 127.0.0.1
lost  MX 10 nowhere
`

// rig is a Manager over a fake network.
type rig struct {
	t       testing.TB
	m       *Manager
	bus     event.Local
	set     *metric.Set
	store   *mta.Store
	path    func(PathArgs) *PathConfig
	done    chan error
	stop    context.CancelFunc
	slots   map[string]*queue.Slot
	qconf   map[string]*queue.Config
	deliver func(c *fakeConn, m *mta.Message, rs []mta.Address, out *Outcome) // nil delivers
	refuse  func(p *Path) error

	mu       sync.Mutex
	open     map[string]int // by ready queue
	most     map[string]int
	opened   []string // addresses
	closed   int
	sent     []time.Time
	results  []string // "local: code ..." in order
	records  []*mta.Record
	returned []queue.Return
}

func newRig(t testing.TB, edit ...func(*PathConfig)) *rig {
	r := &rig{t: t, open: map[string]int{}, most: map[string]int{}, slots: map[string]*queue.Slot{},
		qconf: map[string]*queue.Config{}, done: make(chan error, 1), set: metric.NewSet()}
	r.store = mta.NewStore(memory.New(), memory.New(), nil, nil)
	planner, err := route.NewPlanner(route.Config{Resolver: dnstest.Zone(t, zone)})
	if err != nil {
		t.Fatal(err)
	}
	r.path = func(PathArgs) *PathConfig { c := settings.New(edit...); return &c }
	if err := GetPathConfig.On(&r.bus, func(_ context.Context, a PathArgs) (*PathConfig, error) {
		return r.path(a), nil
	}); err != nil {
		t.Fatal(err)
	}
	r.m, err = New(Options{Bus: &r.bus, Planner: planner, Openers: map[string]Opener{SMTPClient: r}, Hostname: "me.test",
		Metrics: r.set, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs the manager until the test ends.
func (r *rig) start() *rig {
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() { r.done <- r.m.Run(ctx) }()
	r.t.Cleanup(func() {
		stop()
		if err := <-r.done; err != nil {
			r.t.Error(err)
		}
	})
	return r
}

// halt ends Run and waits for it.
func (r *rig) halt() {
	r.stop()
	err := <-r.done
	r.done <- err
}

type fakeConn struct {
	r      *rig
	p      *Path
	n      int
	check  error
	closed chan struct{}
}

func (r *rig) Open(_ context.Context, p *Path, _ *PathConfig) (Carrier, error) {
	if r.refuse != nil {
		if err := r.refuse(p); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[p.Queue]++
	r.most[p.Queue] = max(r.most[p.Queue], r.open[p.Queue])
	r.opened = append(r.opened, p.Target.Addr.String())
	return &fakeConn{r: r, p: p, closed: make(chan struct{})}, nil
}

func (c *fakeConn) Info() Info {
	return Info{Peer: &mta.Peer{Name: c.p.Target.Name, Addr: c.p.Target.Addr}, Protocol: "ESMTP"}
}
func (c *fakeConn) Check(context.Context) error { return c.check }
func (c *fakeConn) Close() error {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.open[c.p.Queue]--
	c.r.closed++
	return nil
}

func (c *fakeConn) Deliver(_ context.Context, m *mta.Message, rs []mta.Address, out *Outcome) error {
	c.n++
	c.r.mu.Lock()
	c.r.sent = append(c.r.sent, time.Now())
	c.r.mu.Unlock()
	if c.r.deliver != nil {
		c.r.deliver(c, m, rs, out)
		return nil
	}
	out.Add(StageDot, 0, rs, mta.Response{Code: 250, Content: "ok"})
	return nil
}

var errRefused = errors.New("refused")

// ticket makes one for recipients at a domain; the tickets of a domain share their slot.
func (r *rig) ticket(domain string, locals ...string) *queue.Ticket {
	if len(locals) == 0 {
		locals = []string{"u"}
	}
	env := mta.Envelope{Sender: mta.Address{Local: "s", Domain: "me.test"}}
	for _, l := range locals {
		env.Recipients = append(env.Recipients, mta.Address{Local: l, Domain: domain})
	}
	m := r.store.New(env, []byte("Subject: x\r\n\r\nbody\r\n"))
	t := queue.NewTicket(m, mta.QueueName{Domain: domain}, r.qconf[domain],
		func(_ context.Context, rec *mta.Record, rs []mta.Result) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.records = append(r.records, rec)
			for _, res := range rs {
				names := make([]string, len(res.Recipients))
				for i, a := range res.Recipients {
					names[i] = a.Local
				}
				r.results = append(r.results, strings.Join(names, "+")+":"+strconv.Itoa(res.Response.Code)+
					[]string{" delivered", " transient", " failed"}[res.Disposition])
			}
			return nil
		}, func(_ context.Context, ret queue.Return) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.returned = append(r.returned, ret)
			return nil
		})
	if r.slots[domain] == nil {
		r.slots[domain] = t.Selector
	}
	t.Selector = r.slots[domain]
	return t
}

// take hands n tickets for domain over.
func (r *rig) take(n int, domain string, locals ...string) {
	r.t.Helper()
	for range n {
		if err := r.m.Take(context.Background(), r.ticket(domain, locals...)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// tally counts equal results.
func (r *rig) tally() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := map[string]int{}
	for _, s := range r.results {
		m[s]++
	}
	return m
}

func (r *rig) backWith() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := map[string]int{}
	for _, x := range r.returned {
		m[x.Context]++
	}
	return m
}

func (r *rig) want(what string, got any, want any) {
	r.t.Helper()
	g, w := sprint(got), sprint(want)
	if g != w {
		r.t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

func sprint(v any) string {
	switch v := v.(type) {
	case map[string]int:
		keys := make([]string, 0, len(v))
		for k, n := range v {
			keys = append(keys, k+"="+strconv.Itoa(n))
		}
		slices.Sort(keys)
		return strings.Join(keys, ", ")
	case []string:
		return strings.Join(v, ", ")
	case int:
		return strconv.Itoa(v)
	case string:
		return v
	}
	return "?"
}

// bubble runs f in fake time.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func noSkip(c *PathConfig) { c.ProhibitedHosts = nil }

func (r *rig) connections() int { return len(r.targets()) }

func (r *rig) targets() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.opened)
}

func (r *rig) openNow(q string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[q]
}

func (r *rig) closedNow() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}
