// Command svcload measures and checks a mail server: it sends numbered messages to it over SMTP and is the destination
// that the server delivers them to, so that it can tell for every message whether it arrived, once, and how long that
// took.
//
//	svcload direct                       generator straight to the sink: the ceiling of this machine
//	svcload through --target HOST:PORT   generator to the server, server to the sink (--sink HOST:PORT)
//	svcload sink                         only the sink, until interrupted
//
// The server has to route every domain under load.example to the sink; examples/load/init.lua does. The result is one
// JSON object on standard output. "through" with --compare first measures the direct rate with the same settings and
// adds the ratio of the two. The exit code is 0 only if nothing was lost,
// duplicated, changed or refused by the server.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/svc/cmd/internal/load"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "svcload:", err)
		os.Exit(1)
	}
}

// options are the flags of all modes.
type options struct {
	count, concurrency, perSession, domains int
	skew, tempFail, reject                  float64
	sizes                                   string
	target, sink                            string
	latency, wait, timeout                  time.Duration
	compare, retry                          bool
}

func parse(args []string) (mode string, o options, err error) {
	if len(args) == 0 {
		return "", o, errors.New("give a mode: direct, through or sink")
	}
	fs := flag.NewFlagSet("svcload "+args[0], flag.ContinueOnError)
	fs.IntVar(&o.count, "count", 100000, "number of messages")
	fs.IntVar(&o.concurrency, "concurrency", 256, "connections of the generator")
	fs.IntVar(&o.perSession, "per-session", 1000, "messages on one connection")
	fs.IntVar(&o.domains, "domains", 500, "recipient domains")
	fs.Float64Var(&o.skew, "skew", 0, "weight of domain k is 1/(k+1)^skew; 0 for equal shares")
	fs.Float64Var(&o.tempFail, "temp-fail", 0, "share of messages the sink refuses once with a 4xx reply")
	fs.Float64Var(&o.reject, "reject", 0, "share of messages the sink refuses with a 5xx reply")
	fs.StringVar(&o.sizes, "sizes", "10000", "message sizes in bytes, separated by commas, used in turn")
	fs.StringVar(&o.target, "target", "127.0.0.1:2525", "server under test (through)")
	fs.StringVar(&o.sink, "sink", "127.0.0.1:2526", "address the sink listens on (through, sink)")
	fs.DurationVar(&o.latency, "latency", 0, "delay of the sink's reply to the end of data")
	fs.DurationVar(&o.wait, "wait", 2*time.Minute, "longest wait for deliveries after the last message was accepted")
	fs.DurationVar(&o.timeout, "timeout", time.Minute, "longest wait of the generator for one reply")
	fs.BoolVar(&o.compare, "compare", false, "measure the direct rate first and add the ratio (through)")
	fs.BoolVar(&o.retry, "retry", false, "send messages again whose session broke or that got a 4xx reply")
	err = fs.Parse(args[1:])
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return args[0], o, err
}

// report is what is printed.
type report struct {
	load.Result
	Sizes        []int   `json:"sizes"`
	Domains      int     `json:"domains"`
	SinkSessions int     `json:"sink_sessions"`
	Refused      int     `json:"refused_by_server"`
	Direct       float64 `json:"direct_messages_per_second,omitempty"`
	Ratio        float64 `json:"ratio_to_direct,omitempty"`
}

func run(ctx context.Context, args []string, out io.Writer) error {
	mode, o, err := parse(args)
	if err != nil {
		return err
	}
	sizes, err := parseSizes(o.sizes)
	if err != nil {
		return err
	}
	var rep report
	switch mode {
	case "direct":
		rep, err = measure(ctx, o, sizes, "127.0.0.1:0", "")
	case "through":
		var direct report
		if o.compare {
			if direct, err = measure(ctx, o, sizes, "127.0.0.1:0", ""); err != nil {
				return err
			}
		}
		rep, err = measure(ctx, o, sizes, o.sink, o.target)
		if direct.Rate > 0 {
			rep.Direct, rep.Ratio = direct.Rate, rep.Rate/direct.Rate
		}
	case "sink":
		rep, err = onlySink(ctx, o)
	default:
		return fmt.Errorf("unknown mode %q: give direct, through or sink", mode)
	}
	if err != nil {
		return err
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(rep); err != nil {
		return err
	}
	if rep.Refused > 0 {
		return fmt.Errorf("the server refused %d of %d messages", rep.Refused, rep.Messages)
	}
	return rep.Check()
}

func parseSizes(s string) ([]int, error) {
	var sizes []int
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("bad size %q", part)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// measure runs sink and generator; an empty target means the sink itself.
func measure(ctx context.Context, o options, sizes []int, sinkAddr, target string) (report, error) {
	l := load.NewLedger(o.count, o.tempFail, o.reject)
	if target == "" {
		l = load.NewLedger(o.count, 0, 0) // nobody retries
	}
	sink := &load.Sink{Ledger: l, Latency: o.latency}
	if err := sink.Listen(sinkAddr); err != nil {
		return report{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = sink.Run(ctx) })

	if target == "" {
		target = sink.Addr()
	}
	gen := &load.Generator{Ledger: l, Count: o.count, Target: target, Sender: "sender@load.example",
		Domain: load.Domains(o.domains, o.skew), Sizes: sizes, Concurrency: o.concurrency, PerSession: o.perSession,
		Timeout: o.timeout, Retry: o.retry}
	if err := gen.Run(ctx); err != nil {
		return report{}, err
	}
	if err := waitFor(ctx, l, o.wait); err != nil {
		return report{}, err
	}
	return report{Result: l.Result(), Sizes: sizes, Domains: o.domains, SinkSessions: sink.Sessions(),
		Refused: gen.Refused()}, nil
}

// waitFor waits until every accepted message reached a final state, or as long as limit.
func waitFor(ctx context.Context, l *load.Ledger, limit time.Duration) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for l.Missing() > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline:
			return nil // the result tells what is missing
		case <-tick.C:
		}
	}
	return nil
}

// onlySink serves until ctx ends.
func onlySink(ctx context.Context, o options) (report, error) {
	l := load.NewLedger(o.count, o.tempFail, o.reject)
	sink := &load.Sink{Ledger: l, Latency: o.latency}
	if err := sink.Listen(o.sink); err != nil {
		return report{}, err
	}
	fmt.Fprintln(os.Stderr, "svcload: sink on", sink.Addr())
	if err := sink.Run(ctx); err != nil {
		return report{}, err
	}
	return report{Result: l.Result(), SinkSessions: sink.Sessions()}, nil
}
