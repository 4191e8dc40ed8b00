package load

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

func runDirect(t testing.TB, l *Ledger, g *Generator) {
	t.Helper()
	sink := &Sink{Ledger: l}
	if err := sink.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := sink.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	g.Target = sink.Addr()
	err := g.Run(ctx)
	cancel()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

func newGenerator(l *Ledger, sizes ...int) *Generator {
	return &Generator{Ledger: l, Count: l.Len(), Sender: "from@load.example", Domain: Domains(20, 1), Sizes: sizes,
		Concurrency: 4, PerSession: 50, Timeout: 10 * time.Second}
}

func TestDirect(t *testing.T) {
	l := NewLedger(2000, 0, 0)
	runDirect(t, l, newGenerator(l, 300, 2000, 100_000, 300_000))
	r := l.Result()
	if err := r.Check(); err != nil || r.Accepted != 2000 || r.Delivered != 2000 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// A message that changed on its way is refused and counted.
func TestCorrupted(t *testing.T) {
	l := NewLedger(10, 0, 0)
	g := newGenerator(l, 5000)
	g.PerSession = 1
	sink := &Sink{Ledger: l}
	if err := sink.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = sink.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	g.Target = sink.Addr()
	g.expect()
	bodies, off := g.templates()
	for id, change := range map[int]int{1: 200, 2: 4000, 3: 0} {
		b := append([]byte(nil), bodies[0]...)
		writeNumber(b[off:off+idDigits], id)
		if change > 0 {
			b[change] = 'X'
		}
		c, err := net.Dial("tcp", sink.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(c, "MAIL FROM:<a@b>\r\nRCPT TO:<u%d@c>\r\nDATA\r\n%sQUIT\r\n", id, b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if r := l.Result(); r.Corrupted != 2 || r.Delivered != 1 || r.Check() == nil {
		t.Errorf("%+v", r)
	}
}

func TestLedgerFindsFaults(t *testing.T) {
	l := NewLedger(4, 0, 0)
	for id := range 3 {
		l.Accepted(id)
	}
	l.Arrived(0)
	l.Arrived(1)
	l.Arrived(1)
	l.Arrived(3)
	r := l.Result()
	if r.Lost != 1 || r.Duplicated != 1 || r.Unexpected != 1 || r.Check() == nil || l.Missing() != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestFateShares(t *testing.T) {
	l := NewLedger(100_000, 0.10, 0.02)
	var n [4]int
	for id := range l.Len() {
		n[l.Fate(id)]++
	}
	if n[Reject] < 1900 || n[Reject] > 2100 || n[TempFailRcpt]+n[TempFailData] < 9800 || n[TempFailRcpt]+n[TempFailData] > 10200 {
		t.Fatalf("shares of %v", n)
	}
}

func BenchmarkDirect10KB(b *testing.B) { benchmarkDirect(b, 10_000) }

func BenchmarkDirect100KB(b *testing.B) { benchmarkDirect(b, 100_000) }

func benchmarkDirect(b *testing.B, size int) {
	l := NewLedger(b.N, 0, 0)
	g := newGenerator(l, size)
	g.Concurrency, g.PerSession, g.Domain = 16, 1000, Domains(500, 0)
	b.ReportAllocs()
	b.SetBytes(int64(size))
	b.ResetTimer()
	runDirect(b, l, g)
}
