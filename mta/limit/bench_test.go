package limit_test

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"example.com/svc/mta/limit"
)

func BenchmarkTake1Key(b *testing.B) {
	b.ReportAllocs()
	k, r := limit.NewLocal(), rate(b, "1000/s")
	ctx := b.Context()
	for b.Loop() {
		if _, err := k.Take(ctx, "key", r, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func manyKeys() []string {
	keys := make([]string, 1e5)
	for i := range keys {
		keys[i] = "ready-queue-" + strconv.Itoa(i)
	}
	return keys
}

func BenchmarkTake100kKeys(b *testing.B) {
	b.ReportAllocs()
	k, r, keys := limit.NewLocal(), rate(b, "1000/h"), manyKeys()
	ctx := b.Context()
	for i := 0; b.Loop(); i++ {
		if _, err := k.Take(ctx, keys[i%len(keys)], r, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTakeParallel(b *testing.B) {
	b.ReportAllocs()
	k, r, keys := limit.NewLocal(), rate(b, "1000/h"), manyKeys()
	ctx := b.Context()
	var next atomic.Uint64
	b.RunParallel(func(pb *testing.PB) {
		for i := next.Add(7919); pb.Next(); i++ {
			if _, err := k.Take(ctx, keys[i%uint64(len(keys))], r, 1); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkLease(b *testing.B) {
	b.ReportAllocs()
	k := limit.NewLocal()
	ctx := b.Context()
	for b.Loop() {
		l, ok, err := k.Lease(ctx, "key", limit.Limit{N: 10}, time.Minute)
		if !ok {
			b.Fatal(err)
		}
		l.Release()
	}
}
