//go:build linux && !race

package e2e

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/svc/cmd/internal/load"
	"example.com/svc/mta/server"
)

// residentKB returns a field of the status of this process, in kilobytes.
func residentKB(t testing.TB, field string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no field ", field)
	return 0
}

// TestMemoryOfQueuedMessages queues many messages for a host that is down, with their bodies shrunk to the spool: what
// each adds to the resident memory of the process is bounded, and all of them leave when the host comes up.
func TestMemoryOfQueuedMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const count, size, most = 100_000, 2000, 1536
	w := newWorld(t, count, 0, 0)
	addr := closedAddr(t)
	bus := routeTo(t, addr, 15*time.Second)
	w.edit = func(c *server.Config) { c.Bus = bus }
	w.start(t)
	before := residentKB(t, "VmRSS")

	g := w.generator(0, count, size)
	g.Concurrency, g.PerSession, g.Domain = 64, 1000, load.Domains(500, 0)
	begin := time.Now()
	if err := g.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("accepted in %v", time.Since(begin).Round(time.Millisecond))
	if n := w.srv.Queued(); n != count {
		t.Fatalf("%d messages queued, want %d", n, count)
	}
	// The bodies leave memory as attempts fail; after that it has to come down by itself.
	per, heap := 0.0, 0.0
	for deadline := time.Now().Add(40 * time.Second); ; time.Sleep(time.Second) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		per = float64(residentKB(t, "VmRSS")-before) * 1024 / count
		heap = float64(m.HeapAlloc) / count
		if per <= most || time.Now().After(deadline) {
			t.Logf("after %v: %.0f bytes resident (%.0f at most) and %.0f of heap per message; heap: in use %d MB, idle %d MB, released %d MB",
				time.Since(begin).Round(time.Second), per, float64(residentKB(t, "VmHWM")-before)*1024/count, heap,
				m.HeapInuse>>20, m.HeapIdle>>20, m.HeapReleased>>20)
			break
		}
	}
	if per > most {
		t.Errorf("%.0f bytes resident per queued message, want at most %d", per, most)
	}

	up := &load.Sink{Ledger: w.ledger}
	if err := up.Listen(addr); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = up.Run(ctx) })
	defer running.Wait()
	defer cancel()
	for deadline := time.Now().Add(2 * time.Minute); w.ledger.Missing() > 0 || w.srv.Queued() > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages missing, %d queued", w.ledger.Missing(), w.srv.Queued())
		}
	}
	t.Logf("drained after %v", time.Since(begin).Round(time.Second))
	if err := w.ledger.Result().Check(); err != nil {
		t.Fatal(err)
	}
}
