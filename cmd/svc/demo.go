package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.com/svc/cmd/internal/load"
	"example.com/svc/egress"
	"example.com/svc/mta"
	"example.com/svc/mta/journal/jsonl"
	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
	"example.com/svc/queue"
)

// Shares of the sink in the demo.
const (
	demoTempFail = 0.10
	demoReject   = 0.02
	demoDomains  = 50
	demoSize     = 4000
)

// demo runs a complete server on the embedded default policy, with its files in a temporary folder and its listeners on
// free ports, and sends mail through it to a sink in this process.
func demo(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("svc demo", flag.ContinueOnError)
	fs.SetOutput(stderr)
	n := fs.Int("messages", 2000, "number of messages, half over SMTP, half over HTTP")
	verbose := fs.Bool("verbose", false, "show the diagnostics of the server")
	limit := fs.Duration("timeout", 3*time.Minute, "longest time to wait for the last delivery")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if *n < 2 || fs.NArg() > 0 {
		return errors.New("demo: give --messages of at least 2 and no arguments")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	level := slog.LevelError
	if *verbose {
		level = slog.LevelInfo
	}
	dir, err := os.MkdirTemp("", "svc-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demoRun{dir: dir, out: stdout, live: isTerminal(stdout), limit: *limit, log: newLog(stderr, level, false),
		ledger: load.NewLedger(*n, demoTempFail, demoReject)}
	return d.run(ctx)
}

// demoRun is one demonstration.
type demoRun struct {
	dir    string
	out    io.Writer
	live   bool // redraw one line instead of printing many
	limit  time.Duration
	log    *slog.Logger
	ledger *load.Ledger
	srv    *server.Server
}

func (d *demoRun) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sink := &load.Sink{Ledger: d.ledger}
	if err := sink.Listen("127.0.0.1:0"); err != nil {
		return err
	}
	sinkDone := background(func() error { return sink.Run(ctx) })
	if err := d.build(ctx, sink.Addr()); err != nil {
		return err
	}
	serverCtx, stopServer := context.WithCancel(ctx)
	defer stopServer()
	serverDone := background(func() error { return d.srv.Run(serverCtx) })
	select {
	case <-d.srv.Ready():
	case err := <-serverDone:
		return err
	}
	_, _ = fmt.Fprintf(d.out, "svc demo: %d messages for %d domains, half over SMTP (%s), half over HTTP (%s), to a sink on %s\n",
		d.ledger.Len(), demoDomains, d.srv.SMTPAddrs()[0], d.srv.HTTPAddrs()[0], sink.Addr())
	err := d.exchange(ctx)
	stopServer()
	err = errors.Join(err, <-serverDone)
	cancel()
	err = errors.Join(err, <-sinkDone)
	if err != nil {
		return err
	}
	return d.summary()
}

// build loads the embedded policy, moves its files and ports, and routes every domain to the sink. Handlers in Go stand
// beside those of the policy on the same bus.
func (d *demoRun) build(ctx context.Context, sink string) error {
	in, err := loadPolicy(ctx, policySource{name: "default.lua", text: defaultPolicy}, d.log)
	if err != nil {
		return err
	}
	err = in.builder.Edit(func(c *server.Config) {
		for i := range c.Spools {
			c.Spools[i].Path = filepath.Join(d.dir, "spool", c.Spools[i].Name)
			c.Spools[i].MinFreeSpace, c.Spools[i].MinFreeInodes = settings.FreeSpace{}, settings.FreeSpace{}
		}
		for i := range c.Logs {
			c.Logs[i].LogDir = filepath.Join(d.dir, "logs")
			c.Logs[i].MinFreeSpace, c.Logs[i].MinFreeInodes = settings.FreeSpace{}, settings.FreeSpace{}
		}
		for i := range c.SMTP {
			c.SMTP[i].Listen = "127.0.0.1:0"
		}
		for i := range c.HTTP {
			c.HTTP[i].Listen = settings.AddrPort{AddrPort: netip.MustParseAddrPort("127.0.0.1:0")}
		}
	})
	if err != nil {
		return err
	}
	if err := d.route(in, sink); err != nil {
		return err
	}
	d.srv, err = in.builder.Build()
	return err
}

// route sends all mail to the sink and retries soon.
func (d *demoRun) route(in *instance, sink string) error {
	var host queue.MXHost
	if err := host.UnmarshalText([]byte(sinkHost(sink))); err != nil {
		return err
	}
	cfg := settings.New(func(c *queue.Config) {
		c.RetryInterval = settings.Duration(time.Second)
		c.Protocol.SMTP = &queue.SMTP{MXList: []queue.MXHost{host}}
	})
	path := settings.New(func(c *egress.PathConfig) { c.ProhibitedHosts = nil })
	return errors.Join(
		queue.GetConfig.On(in.bus, func(context.Context, mta.QueueName) (*queue.Config, error) { return &cfg, nil }),
		egress.GetPathConfig.On(in.bus, func(context.Context, egress.PathArgs) (*egress.PathConfig, error) { return &path, nil }))
}

// sinkHost writes host:port as an entry of mx_list.
func sinkHost(addr string) string {
	host, port, _ := strings.Cut(addr, ":")
	return "[" + host + "]:" + port
}

// exchange sends the messages and waits until each one reached a final state.
func (d *demoRun) exchange(ctx context.Context) error {
	half := d.ledger.Len() / 2
	smtp := &load.Generator{Ledger: d.ledger, Count: half, Target: d.srv.SMTPAddrs()[0].String(), Sender: "demo@load.example",
		Domain: load.Domains(demoDomains, 0), Sizes: []int{demoSize}, Concurrency: 8, PerSession: 100, Timeout: time.Minute}
	web := &load.HTTPGenerator{Ledger: d.ledger, First: half, Count: d.ledger.Len() - half, URL: "http://" + d.srv.HTTPAddrs()[0].String(),
		Sender: "demo@load.example", Domain: load.Domains(demoDomains, 0), Size: demoSize, Concurrency: 8, Timeout: time.Minute}
	smtpDone := background(func() error { return smtp.Run(ctx) })
	webDone := background(func() error { return web.Run(ctx) })
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(d.limit)
	defer deadline.Stop()
	sending := 2
	for lines := 0; ; lines++ {
		select {
		case err := <-smtpDone:
			if err != nil {
				return err
			}
			smtpDone, sending = nil, sending-1
		case err := <-webDone:
			if err != nil {
				return err
			}
			webDone, sending = nil, sending-1
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return fmt.Errorf("demo: %d messages are not settled after %s", d.ledger.Missing(), d.limit)
		case <-tick.C:
			if d.live || lines%5 == 0 {
				d.progress()
			}
		}
		if sending == 0 && d.ledger.Missing() == 0 && d.srv.Queued() == 0 {
			d.progress()
			if d.live {
				_, _ = fmt.Fprintln(d.out)
			}
			return nil
		}
	}
}

// progress shows how far it is: redrawn in place on a terminal, a line each otherwise.
func (d *demoRun) progress() {
	accepted, arrived, rejected := d.ledger.Progress()
	n := d.ledger.Len()
	text := fmt.Sprintf("accepted %4d  delivered %4d  rejected %3d  in the queue %4d", accepted, arrived, rejected, d.srv.Queued())
	if !d.live {
		_, _ = fmt.Fprintln(d.out, "  "+text)
		return
	}
	const width = 30
	done := width * (arrived + rejected) / n
	_, _ = fmt.Fprintf(d.out, "\r\x1b[K[%s%s] %s", strings.Repeat("#", done), strings.Repeat(".", width-done), text)
}

// summary prints the outcome and returns an error unless the sink and the log agree that nothing was lost or doubled.
func (d *demoRun) summary() error {
	r := d.ledger.Result()
	types, err := recordTypes(filepath.Join(d.dir, "logs"))
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(d.out, `
accepted                      %6d
delivered                     %6d
  deferred, delivered later   %6d
bounced                       %6d
lost / duplicated             %6d / %d
accept to delivery            p50 %.1f ms, p99 %.1f ms
rate                          %.0f messages/s
log records                   %d Reception, %d Delivery, %d TransientFailure, %d Bounce
`, r.Accepted, r.Delivered, r.Deferred, types[mta.Bounce], r.Lost, r.Duplicated, r.P50, r.P99, r.Rate,
		types[mta.Reception], types[mta.Delivery], types[mta.TransientFailure], types[mta.Bounce])
	if err := r.Check(); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if r.Accepted != d.ledger.Len() || r.Delivered+r.Rejected != r.Accepted || types[mta.Reception] != r.Accepted ||
		types[mta.Delivery] != r.Delivered || types[mta.Bounce] != r.Rejected {
		return fmt.Errorf("demo: the log and the sink disagree: %+v, log %v", r, types)
	}
	return nil
}

// recordTypes counts the records in a log folder by type.
func recordTypes(dir string) (map[mta.RecordType]int, error) {
	counts := map[mta.RecordType]int{}
	for line, err := range jsonl.Dir(dir) {
		if err != nil {
			return nil, err
		}
		var rec struct {
			Type mta.RecordType `json:"type"`
		}
		if err := json.Unmarshal(line, &rec); err != nil {
			return nil, fmt.Errorf("log record %q: %w", line, err)
		}
		counts[rec.Type]++
	}
	return counts, nil
}

// background runs fn and returns the channel that its result comes from.
func background(fn func() error) <-chan error {
	ch := make(chan error, 1)
	go func() { ch <- fn() }()
	return ch
}
