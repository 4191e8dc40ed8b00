package e2e

import (
	"testing"
	"time"

	"example.com/svc/cmd/internal/load"
)

func BenchmarkDebug(b *testing.B) {
	for _, size := range []int{10_000, 100_000} {
		w := newWorld(b, b.N, 0, 0)
		w.start(b)
		g := w.generator(0, b.N, size)
		g.Concurrency, g.PerSession, g.Domain = 256, 1000, load.Domains(500, 0)
		done := make(chan struct{})
		go func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(200 * time.Millisecond):
					acc, arr, _ := w.ledger.Progress()
					b.Logf("acc %d arrived %d queued %d", acc, arr, w.srv.Queued())
				}
			}
		}()
		if err := g.Run(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.Log("generator done")
		w.settle(b)
		close(done)
		w.stop()
	}
}
