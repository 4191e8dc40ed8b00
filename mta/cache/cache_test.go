package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// numbers counts what the instruments of a cache are told.
type numbers struct {
	mu sync.Mutex
	n  map[string]int
}

type number struct {
	of   *numbers
	name string
}

func (c number) add(n int) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.of.n[c.name] += n
}

type counter struct{ number }
type gauge struct{ number }

func (c counter) Add(n int)   { c.add(n) }
func (g gauge) Add(x float64) { g.add(int(x)) }

func (n *numbers) metrics() *Metrics {
	n.n = make(map[string]int)
	return NewMetrics(
		func(name, _ string) Counter { return counter{number{n, name}} },
		func(name, _ string) Gauge { return gauge{number{n, name}} })
}

func (n *numbers) want(t *testing.T, want map[string]int) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	got := maps.Clone(n.n)
	maps.DeleteFunc(got, func(_ string, v int) bool { return v == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("instruments say %v, want %v", got, want)
	}
}

func constant(v int, ttl time.Duration) func(context.Context) (int, time.Duration, error) {
	return func(context.Context) (int, time.Duration, error) { return v, ttl, nil }
}

func never(t *testing.T) func(context.Context) (int, time.Duration, error) {
	return func(context.Context) (int, time.Duration, error) {
		t.Error("populate was called")
		return 0, 0, nil
	}
}

func failing(err error) func(context.Context) (int, time.Duration, error) {
	return func(context.Context) (int, time.Duration, error) { return 0, time.Hour, err }
}

func expect(t *testing.T, c *Cache[string, int], key string, populate func(context.Context) (int, time.Duration, error),
	want int, wantErr error) {
	t.Helper()
	got, err := c.Fetch(t.Context(), key, populate)
	if got != want || !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
		t.Errorf("Fetch(%q) = %d, %v; want %d, %v", key, got, err, want, wantErr)
	}
}

func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		c := New[string, int](Options{Capacity: 100, Metrics: n.metrics()})
		expect(t, c, "a", constant(1, time.Second), 1, nil)
		expect(t, c, "a", never(t), 1, nil)
		c.Set("b", 2, 3*time.Second)
		time.Sleep(time.Second)
		if _, ok := c.Get("a"); ok || c.Len() != 1 {
			t.Error("CA-1: an expired item is found or kept")
		}
		expect(t, c, "a", constant(3, time.Second), 3, nil)
		time.Sleep(time.Second)
		expect(t, c, "a", constant(4, 0), 4, nil)
		if c.Len() != 1 {
			t.Error("an item without ttl is kept")
		}
		if v, ok := c.Get("b"); !ok || v != 2 {
			t.Errorf("b is %d, %v", v, ok)
		}
		time.Sleep(time.Second)
		if got := c.Prune(); got != 1 || c.Len() != 0 {
			t.Errorf("CA-2: Prune removed %d, %d left", got, c.Len())
		}
		n.want(t, map[string]int{"lruttl_lookup_count": 6, "lruttl_hit_count": 2, "lruttl_miss_count": 4,
			"lruttl_insert_count": 1, "lruttl_populated_count": 3, "lruttl_expire_count": 3})
	})
}

func TestErrorsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		c := New[string, int](Options{Capacity: 100, Metrics: n.metrics()})
		broken := errors.New("broken")
		expect(t, c, "a", failing(broken), 0, broken)
		time.Sleep(59 * time.Second)
		expect(t, c, "a", never(t), 0, broken)
		if _, ok := c.Get("a"); ok {
			t.Error("Get gives a kept error as a value")
		}
		time.Sleep(time.Second)
		expect(t, c, "a", constant(1, time.Hour), 1, nil)
		n.want(t, map[string]int{"lruttl_lookup_count": 4, "lruttl_hit_count": 1, "lruttl_miss_count": 3,
			"lruttl_populated_count": 2, "lruttl_error_count": 1, "lruttl_expire_count": 1, "lruttl_cache_size": 1})

		c = New[string, int](Options{ErrorTTL: -1})
		expect(t, c, "a", failing(broken), 0, broken)
		expect(t, c, "a", constant(2, time.Hour), 2, nil)
		c = New[string, int](Options{ErrorTTL: time.Second})
		expect(t, c, "a", failing(broken), 0, broken)
		time.Sleep(time.Second)
		expect(t, c, "a", constant(3, time.Hour), 3, nil)
	})
}

func TestOnePopulate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		c := New[string, int](Options{Capacity: 1000, Metrics: n.metrics()})
		var calls atomic.Int32
		release := make(chan struct{})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				expect(t, c, "a", func(context.Context) (int, time.Duration, error) {
					calls.Add(1)
					<-release
					return 7, time.Hour, nil
				}, 7, nil)
			})
		}
		synctest.Wait()
		n.want(t, map[string]int{"lruttl_lookup_count": 50, "lruttl_miss_count": 50, "lruttl_populated_count": 1,
			"lruttl_waiting_populate": 49})
		close(release)
		wg.Wait()
		if calls.Load() != 1 {
			t.Errorf("CA-1, C1: populate ran %d times", calls.Load())
		}
	})
}

func TestWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, int](Options{Capacity: 10})
		release := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			expect(t, c, "a", func(context.Context) (int, time.Duration, error) {
				<-release
				return 1, time.Hour, nil
			}, 1, nil)
		})
		synctest.Wait()
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		wg.Go(func() {
			if _, err := c.Fetch(ctx, "a", never(t)); !errors.Is(err, gone) {
				t.Errorf("the waiter whose context ended gets %v", err)
			}
		})
		synctest.Wait()
		cancel(gone)
		begin := time.Now()
		expect(t, c, "a", never(t), 0, ErrTimeout)
		if waited := time.Since(begin); waited != 2*time.Minute {
			t.Errorf("CA-1: waited %s, want 120 s", waited)
		}
		close(release)
		wg.Wait()
		expect(t, c, "a", never(t), 1, nil)
	})
}

func TestPopulateOfACallerThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New[string, int](Options{Capacity: 10})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := c.Fetch(ctx, "a", func(ctx context.Context) (int, time.Duration, error) {
				<-ctx.Done()
				return 0, 0, ctx.Err()
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("C3: the caller that left gets %v", err)
			}
		})
		synctest.Wait()
		for range 3 {
			wg.Go(func() { expect(t, c, "a", constant(5, time.Hour), 5, nil) })
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		expect(t, c, "a", never(t), 5, nil)
	})
}

func TestPanicReleasesTheKey(t *testing.T) {
	c := New[string, int](Options{Capacity: 10})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_, _ = c.Fetch(t.Context(), "a", func(context.Context) (int, time.Duration, error) { panic("x") })
	}()
	expect(t, c, "a", constant(1, time.Hour), 1, nil)
}

func TestChangesDuringPopulate(t *testing.T) {
	for name, change := range map[string]func(*Cache[string, int]){
		"Set":    func(c *Cache[string, int]) { c.Set("a", 9, time.Hour) },
		"Delete": func(c *Cache[string, int]) { c.Delete("a") },
		"Clear":  func(c *Cache[string, int]) { c.Clear() },
	} {
		t.Run("C2 "+name, func(t *testing.T) {
			c := New[string, int](Options{Capacity: 10})
			expect(t, c, "a", func(context.Context) (int, time.Duration, error) {
				change(c)
				return 1, time.Hour, nil
			}, 1, nil)
			want := 2
			if name == "Set" {
				want = 9
			}
			expect(t, c, "a", constant(2, time.Hour), want, nil)
		})
	}
}

func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		c := New[int, int](Options{Capacity: 60, Metrics: n.metrics()})
		for i := range 1000 {
			time.Sleep(time.Millisecond)
			c.Set(i, i, time.Hour)
			if _, ok := c.Get(0); !ok {
				t.Fatalf("CA-1: the item used last was evicted at %d", i)
			}
			if c.Len() > 60 {
				t.Fatalf("CA-1: %d items, capacity 60", c.Len())
			}
		}
		old := 0
		for i := range 500 {
			if _, ok := c.Get(i); ok {
				old++
			}
		}
		if old > 10 {
			t.Errorf("CA-1: %d items of the older half survived", old)
		}
		c.SetCapacity(5)
		if c.Len() != 5 {
			t.Errorf("CA-3: %d items after SetCapacity(5)", c.Len())
		}
		if n.n["lruttl_evict_count"] != 995 || n.n["lruttl_cache_size"] != 5 {
			t.Errorf("instruments say %v", n.n)
		}
		c.Clear()
		if c.Len() != 0 || n.n["lruttl_cache_size"] != 0 {
			t.Errorf("after Clear: %d items, gauge %d", c.Len(), n.n["lruttl_cache_size"])
		}
	})
}

func TestExpiredGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		c := New[int, int](Options{Capacity: 9, Metrics: n.metrics()})
		for i := range 9 {
			ttl := time.Hour
			if i%2 == 1 {
				ttl = time.Second
			}
			c.Set(i, i, ttl)
		}
		time.Sleep(2 * time.Second)
		c.Set(100, 100, time.Hour)
		for i := 0; i < 9; i += 2 {
			if _, ok := c.Get(i); !ok {
				t.Errorf("CA-1: live item %d went while expired ones were there", i)
			}
		}
		if n.n["lruttl_expire_count"] != 4 || n.n["lruttl_evict_count"] != 0 || c.Len() != 6 {
			t.Errorf("instruments say %v, %d items", n.n, c.Len())
		}
	})
}

func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n numbers
		c := New[string, int](Options{Capacity: 10, AllowStale: true, Timeout: 5 * time.Second, Metrics: n.metrics()})
		expect(t, c, "a", constant(1, time.Second), 1, nil)
		time.Sleep(time.Minute)
		if c.Prune() != 0 || c.Len() != 1 {
			t.Error("CA-5: the expired value was removed")
		}
		if _, ok := c.Get("a"); ok {
			t.Error("Get gives an expired value")
		}
		broken := errors.New("broken")
		release := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			expect(t, c, "a", func(context.Context) (int, time.Duration, error) {
				<-release
				return 0, 0, broken
			}, 0, broken)
		})
		synctest.Wait()
		expect(t, c, "a", never(t), 1, nil) // after the timeout
		wg.Go(func() { expect(t, c, "a", never(t), 1, nil) })
		synctest.Wait()
		close(release)
		wg.Wait()
		if n.n["lruttl_stale_count"] != 2 {
			t.Errorf("CA-5: stale count is %d, want 2", n.n["lruttl_stale_count"])
		}
		expect(t, c, "a", constant(2, time.Second), 2, nil)
	})
}

func TestConcurrentUse(t *testing.T) {
	c := New[string, int](Options{Capacity: 2000})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 3000 {
				k := fmt.Sprint(i * (w + 1) % 4000)
				v, err := c.Fetch(t.Context(), k, constant(len(k), time.Hour))
				if err != nil || v != len(k) {
					t.Errorf("got %d, %v", v, err)
				}
				switch i % 500 {
				case 1:
					c.Delete(k)
				case 2:
					c.Clear()
				case 3:
					c.Prune()
				case 4:
					c.Set(k, len(k), time.Hour)
				}
			}
		})
	}
	wg.Wait()
	if c.Len() > 2000+maxShards {
		t.Errorf("%d items, capacity 2000", c.Len())
	}
}

func TestHitDoesNotAllocate(t *testing.T) {
	c := New[string, int](Options{Capacity: 2000})
	c.Set("mx.example.com", 1, time.Hour)
	n := testing.AllocsPerRun(100, func() {
		v, err := c.Fetch(t.Context(), "mx.example.com", constant(1, time.Hour))
		w, ok := c.Get("mx.example.com")
		if v != 1 || w != 1 || err != nil || !ok {
			t.Error("no hit")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

func filled(b *testing.B) *Cache[string, int] {
	c := New[string, int](Options{Capacity: 65536})
	for i := range 60000 {
		c.Set(fmt.Sprintf("domain-%d.example", i), i, time.Hour)
	}
	b.ReportAllocs()
	return c
}

func BenchmarkHit(b *testing.B) {
	c := filled(b)
	for b.Loop() {
		if _, ok := c.Get("domain-777.example"); !ok {
			b.Fatal("no hit")
		}
	}
}

func BenchmarkFetchHitParallel(b *testing.B) {
	c := filled(b)
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = fmt.Sprintf("domain-%d.example", i)
	}
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := c.Fetch(context.Background(), keys[i%len(keys)], constant(1, time.Hour)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkSetOverCapacity(b *testing.B) {
	c := filled(b)
	keys := make([]string, 1<<18)
	for i := range keys {
		keys[i] = fmt.Sprintf("host-%d.example", i)
	}
	i := 0
	for b.Loop() {
		c.Set(keys[i%len(keys)], i, time.Hour)
		i++
	}
}
