package spooltest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"example.com/svc/spool"
)

// Benchmark measures one Put and one Delete of a value by its size, with 1 and
// with 64 writers.
func Benchmark(b *testing.B, open func(b testing.TB, dir string) spool.Spool) {
	for _, size := range []int{512, 2 << 10, 10 << 10, 100 << 10} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("size=%d/writers=%d", size, writers), func(b *testing.B) {
				sp := open(b, b.TempDir())
				defer func() {
					if err := sp.Close(); err != nil {
						b.Error(err)
					}
				}()
				ctx, ids, value := context.Background(), spool.NewIDs(), make([]byte, size)
				Writers(b, writers, func() error {
					id := ids.Next()
					if err := sp.Put(ctx, id, value); err != nil {
						return err
					}
					return sp.Delete(ctx, id)
				})
			})
		}
	}
}

// Writers times b.N calls of one from so many goroutines, and ends the benchmark
// at the first error.
func Writers(b *testing.B, writers int, one func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(b.N))
	done := make(chan error, writers)
	b.ReportAllocs()
	b.ResetTimer()
	for range writers {
		go func() {
			var err error
			for err == nil && left.Add(-1) >= 0 {
				err = one()
			}
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
}
