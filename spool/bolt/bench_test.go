package bolt

import (
	"context"
	"fmt"
	"testing"

	"example.com/svc/spool"
	"example.com/svc/spool/spooltest"
)

func BenchmarkPutDelete(b *testing.B) {
	spooltest.Benchmark(b, func(b testing.TB, dir string) spool.Spool { return openTest(b, dir, Options{}) })
}

// BenchmarkBacklog measures one Put and one Delete of an old value while 12,800
// values stay stored.
func BenchmarkBacklog(b *testing.B) {
	for _, size := range []int{512, 2 << 10, 10 << 10} {
		b.Run(fmt.Sprintf("size=%d", size), func(b *testing.B) {
			s, err := Open(b.TempDir(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			old, ids, value := make(chan spool.ID, 12_864), spool.NewIDs(), make([]byte, size)
			ctx := context.Background()
			for range 200 {
				var items []spool.Item
				for range 64 {
					items = append(items, spool.Item{ID: ids.Next(), Value: value})
					old <- items[len(items)-1].ID
				}
				if err := s.PutBatch(ctx, items); err != nil {
					b.Fatal(err)
				}
			}
			spooltest.Writers(b, 64, func() error {
				id := ids.Next()
				if err := s.Put(ctx, id, value); err != nil {
					return err
				}
				old <- id
				return s.Delete(ctx, <-old)
			})
		})
	}
}
