package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/svc/cmd/internal/load"
	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
)

// BenchmarkThroughPolicy is one message from the generator through a server with durable spools and the policy of
// examples/load to the sink.
func BenchmarkThroughPolicy(b *testing.B) {
	for _, bc := range []struct {
		name string
		size int
	}{{"10KB", 10_000}, {"100KB", 100_000}} {
		b.Run(bc.name, func(b *testing.B) { benchmarkPolicy(b, bc.size) })
	}
}

func benchmarkPolicy(b *testing.B, size int) {
	ctx, cancel := context.WithCancel(context.Background())
	ledger := load.NewLedger(b.N, 0, 0)
	sink := &load.Sink{Ledger: ledger}
	if err := sink.Listen("127.0.0.1:0"); err != nil {
		b.Fatal(err)
	}
	sinkDone := background(func() error { return sink.Run(ctx) })
	srv := benchServer(b, ctx, sink.Addr())
	serverDone := background(func() error { return srv.Run(ctx) })
	defer func() {
		cancel()
		if err := <-serverDone; err != nil {
			b.Error(err)
		}
		<-sinkDone
	}()
	<-srv.Ready()
	gen := &load.Generator{Ledger: ledger, Count: b.N, Target: srv.SMTPAddrs()[0].String(), Sender: "sender@load.example",
		Domain: load.Domains(500, 0), Sizes: []int{size}, Concurrency: 64, PerSession: 1000, Timeout: time.Minute}
	b.ReportAllocs()
	b.SetBytes(int64(size))
	b.ResetTimer()
	if err := gen.Run(ctx); err != nil {
		b.Fatal(err)
	}
	for ledger.Missing() > 0 {
		time.Sleep(time.Millisecond) // a benchmark waits for the last delivery
	}
	b.StopTimer()
	if err := ledger.Result().Check(); err != nil {
		b.Fatal(err)
	}
}

// benchServer builds the server of examples/load with its files in a temporary folder and its ports free.
func benchServer(b *testing.B, ctx context.Context, sink string) *server.Server {
	b.Helper()
	text, err := os.ReadFile("../../examples/load/init.lua")
	if err != nil {
		b.Fatal(err)
	}
	policy := strings.Replace(string(text), "[127.0.0.1]:2526", sinkHost(sink), 1)
	in, err := loadPolicy(ctx, policySource{name: "load.lua", text: []byte(policy)}, newLog(os.Stderr, 8, false))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(in.engine.Close)
	dir := b.TempDir()
	err = in.builder.Edit(func(c *server.Config) {
		for i := range c.Spools {
			c.Spools[i].Path = filepath.Join(dir, c.Spools[i].Name)
		}
		for i := range c.Logs {
			c.Logs[i].LogDir = filepath.Join(dir, "logs")
		}
		c.SMTP[0].Listen = "127.0.0.1:0"
		c.HTTP[0].Listen = settings.AddrPort{AddrPort: netip.MustParseAddrPort("127.0.0.1:0")}
	})
	if err != nil {
		b.Fatal(err)
	}
	srv, err := in.builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	return srv
}
