package e2e

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/svc/cmd/internal/load"
	"example.com/svc/egress"
	"example.com/svc/httpapi"
	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/journal"
	"example.com/svc/mta/journal/jsonl"
	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/queue"
	"example.com/svc/spool"
	"example.com/svc/spool/kinds"
)

// world is a server and the sink it delivers to.
type world struct {
	dir    string
	sink   *load.Sink
	ledger *load.Ledger
	bus    *event.Local
	edit   func(*server.Config)

	srv  *server.Server
	stop func() error
}

// newWorld makes a sink for n messages and the policy that routes all mail to it.
func newWorld(t testing.TB, n int, tempFail, reject float64) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), ledger: load.NewLedger(n, tempFail, reject)}
	w.sink = &load.Sink{Ledger: w.ledger}
	if err := w.sink.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = w.sink.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	w.bus = routeTo(t, w.sink.Addr(), time.Second)

	return w
}

// closedAddr returns an address of this machine at which nothing listens.
func closedAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	return addr
}

// routeTo is a policy that sends all mail to addr.
func routeTo(t testing.TB, addr string, retry time.Duration) *event.Local {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	var mx queue.MXHost
	if err := mx.UnmarshalText([]byte("[" + host + "]:" + port)); err != nil {
		t.Fatal(err)
	}
	bus := new(event.Local)
	if err := queue.GetConfig.On(bus, func(context.Context, mta.QueueName) (*queue.Config, error) {
		c := settings.New(func(c *queue.Config) {
			c.RetryInterval = settings.Duration(retry)
			c.Protocol.SMTP = &queue.SMTP{MXList: []queue.MXHost{mx}}
		})
		return &c, nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := egress.GetPathConfig.On(bus, func(context.Context, egress.PathArgs) (*egress.PathConfig, error) {
		c := settings.New(func(c *egress.PathConfig) { c.ProhibitedHosts, c.MaxReady = nil, 100_000 })
		return &c, nil
	}); err != nil {
		t.Fatal(err)
	}
	return bus
}

// config is a server with both listeners, bbolt spools and a log in the folder of the world.
func (w *world) config() server.Config {
	spoolAt := func(name string) spool.Config {
		return settings.New(func(c *spool.Config) {
			c.Name, c.Kind, c.Path = name, spool.KindBolt, filepath.Join(w.dir, name)
			c.MinFreeSpace, c.MinFreeInodes = settings.FreeSpace{}, settings.FreeSpace{}
		})
	}
	return server.Config{
		Bus:  w.bus,
		SMTP: []smtpd.Config{settings.New(func(c *smtpd.Config) { c.Listen = "127.0.0.1:0" })},
		HTTP: []httpapi.Config{settings.New(func(c *httpapi.Config) {
			c.Listen = settings.AddrPort{AddrPort: netip.MustParseAddrPort("127.0.0.1:0")}
		})},
		Spools: []spool.Config{spoolAt(server.MetaSpool), spoolAt(server.DataSpool)}, OpenSpool: kinds.Open,
		Logs: []journal.Config{settings.New(func(c *journal.Config) {
			c.LogDir = filepath.Join(w.dir, "logs")
			c.MinFreeSpace, c.MinFreeInodes = settings.FreeSpace{}, settings.FreeSpace{}
		})},
		Log: slog.New(slog.DiscardHandler),
	}
}

// start runs the server and waits until it serves.
func (w *world) start(t testing.TB) {
	t.Helper()
	cfg := w.config()
	if w.edit != nil {
		w.edit(&cfg)
	}
	srv, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	select {
	case <-srv.Ready():
	case err := <-done:
		cancel()
		t.Fatal("the server did not start:", err)
	}
	w.srv = srv
	var once sync.Once
	var result error
	w.stop = func() error {
		once.Do(func() { cancel(); result = <-done })
		return result
	}
	t.Cleanup(func() {
		if err := w.stop(); err != nil {
			t.Error("stop:", err)
		}
	})
}

func (w *world) generator(first, count int, sizes ...int) *load.Generator {
	return &load.Generator{Ledger: w.ledger, First: first, Count: count, Target: w.srv.SMTPAddrs()[0].String(),
		Sender: "e2e@load.example", Domain: load.Domains(50, 0), Sizes: sizes, Concurrency: 16, PerSession: 200,
		Timeout: 30 * time.Second}
}

// settle waits until every accepted message has a final state and the queue is empty.
func (w *world) settle(t testing.TB) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for w.ledger.Missing() > 0 || w.srv.Queued() > 0 {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages missing, %d queued: %+v", w.ledger.Missing(), w.srv.Queued(), w.ledger.Result())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// records counts the log records by type, after the server stopped.
func (w *world) records(t testing.TB) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line, err := range jsonl.Dir(filepath.Join(w.dir, "logs")) {
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(line), `"type":"`)
		kind, _, _ := strings.Cut(rest, `"`)
		counts[kind]++
	}
	return counts
}

func TestDelivers(t *testing.T) {
	w := newWorld(t, 1000, 0.1, 0.02)
	w.start(t)
	if err := w.generator(0, 500, 500, 20_000).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := &load.HTTPGenerator{Ledger: w.ledger, First: 500, Count: 500, URL: "http://" + w.srv.HTTPAddrs()[0].String(),
		Sender: "e2e@load.example", Domain: load.Domains(50, 0), Size: 3000, Concurrency: 8, Timeout: 30 * time.Second}
	if err := web.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.settle(t)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	r := w.ledger.Result()
	if err := r.Check(); err != nil || r.Accepted != 1000 || r.Delivered+r.Rejected != 1000 || r.Deferred == 0 || r.Rejected == 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	counts := w.records(t)
	if counts["Reception"] != 1000 || counts["Delivery"] != r.Delivered || counts["Bounce"] != r.Rejected ||
		counts["TransientFailure"] != r.Deferred {
		t.Errorf("log records %v for %+v", counts, r)
	}
}

// Two servers in one process share nothing.
func TestTwoServers(t *testing.T) {
	a, b := newWorld(t, 200, 0, 0), newWorld(t, 200, 0, 0)
	a.start(t)
	b.start(t)
	for _, w := range []*world{a, b} {
		if err := w.generator(0, 200, 1000).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range []*world{a, b} {
		w.settle(t)
		if r := w.ledger.Result(); r.Check() != nil || r.Delivered != 200 {
			t.Errorf("%+v", r)
		}
	}
	if a.srv.Metrics() == b.srv.Metrics() || a.srv.Epoch() == b.srv.Epoch() {
		t.Error("the servers share state")
	}
}

// A restart recovers the queue from the spool (flows SP-3).
func TestRestartRecovers(t *testing.T) {
	w := newWorld(t, 300, 0, 0)
	down := true
	w.edit = func(c *server.Config) {
		if down {
			c.Bus = routeTo(t, closedAddr(t), time.Hour)
		}
	}
	w.start(t)
	if err := w.generator(0, 300, 2000).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if _, arrived, _ := w.ledger.Progress(); arrived != 0 {
		t.Fatalf("%d messages arrived while the sink was unreachable", arrived)
	}
	down = false
	w.start(t)
	w.settle(t)
	if r := w.ledger.Result(); r.Check() != nil || r.Delivered != 300 {
		t.Fatalf("%+v", r)
	}
}

// BenchmarkThrough is one message from the generator through a server with durable spools to the sink.
func BenchmarkThrough(b *testing.B) {
	for _, bc := range []struct {
		name string
		size int
	}{{"10KB", 10_000}, {"100KB", 100_000}} {
		b.Run(bc.name, func(b *testing.B) {
			w := newWorld(b, b.N, 0, 0)
			w.start(b)
			g := w.generator(0, b.N, bc.size)
			g.Concurrency, g.PerSession, g.Domain = 256, 1000, load.Domains(500, 0)
			b.ReportAllocs()
			b.SetBytes(int64(bc.size))
			b.ResetTimer()
			if err := g.Run(b.Context()); err != nil {
				b.Fatal(err)
			}
			w.settle(b)
			b.StopTimer()
			if err := w.ledger.Result().Check(); err != nil {
				b.Fatal(err)
			}
		})
	}
}
