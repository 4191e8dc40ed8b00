package limit_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"example.com/svc/mta/limit"
)

func rate(t testing.TB, s string) limit.Rate {
	r, err := limit.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func take(t testing.TB, k limit.Keeper, key string, r limit.Rate, n int) limit.Result {
	res, err := k.Take(t.Context(), key, r, n)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := limit.NewLocal(), rate(t, "6/m")
		for i := range 6 {
			want := limit.Result{Limit: 6, Remaining: uint64(5 - i), ResetAfter: time.Duration(i+1) * 10 * time.Second}
			if got := take(t, k, "a", r, 1); got != want {
				t.Errorf("TH-3 take %d: got %+v, want %+v", i, got, want)
			}
		}
		time.Sleep(500 * time.Millisecond)
		refused := limit.Result{Throttled: true, Limit: 6, ResetAfter: time.Minute, RetryAfter: 10 * time.Second, Wait: 9500 * time.Millisecond}
		for range 3 { // nothing is stored by a refusal
			if got := take(t, k, "a", r, 1); got != refused {
				t.Errorf("TH-2: got %+v, want %+v", got, refused)
			}
		}
		if got := take(t, k, "b", r, 1); got.Throttled {
			t.Error("names share a rate")
		}
		if got := take(t, k, "a", rate(t, "7/m"), 1); got.Throttled {
			t.Error("TH-4: a changed rate did not start fresh")
		}
		time.Sleep(9500*time.Millisecond - 1)
		if got := take(t, k, "a", r, 1); !got.Throttled || got.Wait != 1 {
			t.Errorf("admitted too early: %+v", got)
		}
		time.Sleep(1 * time.Nanosecond)
		if got := take(t, k, "a", r, 0); got.Throttled || got.Remaining != 1 {
			t.Errorf("a look: %+v", got)
		}
		if got := take(t, k, "a", r, 1); got.Throttled || got.Remaining != 0 {
			t.Errorf("not admitted after the wait: %+v", got)
		}
		time.Sleep(time.Hour)
		if got := take(t, k, "a", r, 4); got.Throttled || got.Remaining != 2 {
			t.Errorf("TH-2 quantity: %+v", got)
		}
		if got := take(t, k, "a", r, 3); !got.Throttled || got.Remaining != 2 || got.Wait != 10*time.Second {
			t.Errorf("TH-2 quantity beyond: %+v", got)
		}
	})
}

func TestTakeRefuses(t *testing.T) {
	k := limit.NewLocal()
	for _, r := range []limit.Rate{{}, {Count: 1}, {Period: 1}, {Count: 1, Period: -1}, {Count: 1, Period: math.MaxInt64, Burst: 5}} {
		if _, err := k.Take(t.Context(), "k", r, 1); err == nil {
			t.Errorf("%+v was served", r)
		}
	}
	if _, err := k.Take(t.Context(), "k", rate(t, "5/s"), 6); !errors.Is(err, limit.ErrNeverAdmitted) {
		t.Error(err)
	}
	if _, err := k.Take(t.Context(), "k", rate(t, "5/s"), -1); err == nil {
		t.Error("took back")
	}
}

// E1: in any window of length w at most burst + w/interval takes are admitted, and a busy taker gets at least 95 % of it.
func TestNeverAboveAndWellUsed(t *testing.T) {
	for _, spec := range []string{"100/s", "3/s", "7/m,max_burst=1", "1000/h,max_burst=10", "1/d,max_burst=3", "999983/s,max_burst=5"} {
		t.Run("E1 "+spec, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, r := limit.NewLocal(), rate(t, spec)
				burst := r.Burst
				if burst == 0 {
					burst = r.Count
				}
				const takes = 3000
				at := make([]time.Duration, 0, takes)
				start := time.Now()
				for range takes {
					if _, err := limit.TakeWait(t.Context(), k, "k", r, 1); err != nil {
						t.Fatal(err)
					}
					at = append(at, time.Since(start))
				}
				// The n-th take after take i, counted from 0, may not come before n+1-burst intervals have passed.
				for i := range at {
					for _, n := range []int{1, 2, 10, 500, takes - 1 - i} {
						if i+n >= len(at) {
							continue
						}
						least := float64(n+1-int(burst)) / r.PerSecond() * 1e9
						if got := float64(at[i+n] - at[i]); got < math.Floor(least)-1 {
							t.Fatalf("take %d came %v after take %d, want at least %v", i+n, time.Duration(got), i, time.Duration(least))
						}
					}
				}
				possible := at[takes-1].Seconds()*r.PerSecond() + float64(burst)
				if takes < 0.95*possible {
					t.Errorf("used %d of %.0f", takes, possible)
				}
			})
		})
	}
}

// A model with exact fractions agrees with the keeper for random rates, quantities and pauses.
func TestTakeModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := limit.Rate{
			Count:  rapid.Uint64Range(1, 1000).Draw(rt, "count"),
			Period: time.Duration(rapid.Int64Range(1, 1e6).Draw(rt, "period")),
			Burst:  rapid.Uint64Range(0, 50).Draw(rt, "burst"),
		}
		burst := r.Burst
		if burst == 0 {
			burst = r.Count
		}
		pauses := rapid.SliceOfN(rapid.Int64Range(0, 2e6), 1, 60).Draw(rt, "pauses")
		sizes := rapid.SliceOfN(rapid.Uint64Range(1, burst), len(pauses), len(pauses)).Draw(rt, "sizes")
		synctest.Test(t, func(t *testing.T) {
			k := limit.NewLocal()
			var now, tat int64 // in units of 1/count nanoseconds
			for i, p := range pauses {
				time.Sleep(time.Duration(p))
				now += p * int64(r.Count)
				next := max(tat, now) + int64(sizes[i])*int64(r.Period)
				throttled := next > now+int64(burst)*int64(r.Period)
				if !throttled {
					tat = next
				}
				res := take(t, k, "k", r, int(sizes[i]))
				remaining := (now + int64(burst)*int64(r.Period) - max(tat, now)) / int64(r.Period)
				if res.Throttled != throttled || res.Remaining != uint64(remaining) {
					rt.Fatalf("step %d: got %+v, want throttled %v, remaining %d", i, res, throttled, remaining)
				}
				if throttled {
					wait := next - now - int64(burst)*int64(r.Period)
					if want := (wait + int64(r.Count) - 1) / int64(r.Count); int64(res.Wait) != want {
						rt.Fatalf("step %d: wait %d, want %d", i, res.Wait, want)
					}
				}
			}
		})
	})
}

func TestTakeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := limit.NewLocal()
		rates := []limit.Named{{Key: "big", Rate: rate(t, "100/s")}, {Key: "small", Rate: rate(t, "1/s")}, {Key: "mid", Rate: rate(t, "10/s")}}
		if res, key, err := limit.TakeAll(t.Context(), k, rates); res.Throttled || key != "" || err != nil || res.Limit != 100 {
			t.Errorf("TH-8: %+v %q %v", res, key, err)
		}
		if res, key, err := limit.TakeAll(t.Context(), k, rates); !res.Throttled || key != "small" || err != nil {
			t.Errorf("TH-8: the smallest did not refuse first: %+v %q %v", res, key, err)
		}
		if res := take(t, k, "mid", rate(t, "10/s"), 0); res.Remaining != 9 {
			t.Errorf("TH-8: a rate after the refusal was asked: %+v", res)
		}
		if rates[0].Key != "big" {
			t.Error("the list of the caller was sorted")
		}
		if _, key, err := limit.TakeAll(t.Context(), k, []limit.Named{{Key: "bad"}}); err == nil || key != "bad" {
			t.Error(key, err)
		}
	})
}

func TestTakeWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := limit.NewLocal(), rate(t, "1/m")
		start := time.Now()
		if slept, err := limit.TakeWait(t.Context(), k, "k", r, 1); slept || err != nil {
			t.Error(slept, err)
		}
		if slept, err := limit.TakeWait(t.Context(), k, "k", r, 1); !slept || err != nil || time.Since(start) != time.Minute {
			t.Errorf("TH-9: %v %v after %v", slept, err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := limit.TakeWait(ctx, k, "k", r, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func lease(t testing.TB, k limit.Keeper, key string, n uint64, ttl time.Duration) limit.Lease {
	l, ok, err := k.Lease(t.Context(), key, limit.Limit{N: n}, ttl)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		return nil
	}
	return l
}

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := limit.NewLocal()
		a, b := lease(t, k, "k", 2, time.Minute), lease(t, k, "k", 2, time.Minute)
		if a == nil || b == nil || lease(t, k, "k", 2, time.Minute) != nil {
			t.Fatal("TH-7: want two of two")
		}
		if lease(t, k, "other", 1, time.Minute) == nil {
			t.Error("names share a limit")
		}
		if c := lease(t, k, "k", 3, time.Minute); c == nil {
			t.Error("a raised limit has room")
		} else {
			c.Release()
		}
		a.Release()
		a.Release()
		c := lease(t, k, "k", 2, time.Minute)
		if c == nil || lease(t, k, "k", 2, time.Minute) != nil {
			t.Fatal("TH-7: a double release made room twice")
		}
		time.Sleep(30 * time.Second)
		if err := b.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(30 * time.Second)
		d := lease(t, k, "k", 2, time.Minute)
		if d == nil || lease(t, k, "k", 2, time.Minute) != nil {
			t.Fatal("TH-7: c is to be pruned, b is not")
		}
		if err := c.Extend(t.Context()); !errors.Is(err, limit.ErrLeaseLost) {
			t.Error("TH-7: a pruned lease was extended:", err)
		}
		c.Release() // of a pruned lease does nothing
		if lease(t, k, "k", 2, time.Minute) != nil {
			t.Error("a pruned lease was released")
		}
		for _, bad := range []func() (limit.Lease, bool, error){
			func() (limit.Lease, bool, error) { return k.Lease(t.Context(), "k", limit.Limit{}, time.Minute) },
			func() (limit.Lease, bool, error) { return k.Lease(t.Context(), "k", limit.Limit{N: 1}, 0) },
		} {
			if _, ok, err := bad(); ok || err == nil {
				t.Error("TH-6: a limit of nothing was leased")
			}
		}
		if l := lease(t, k, "forever", 1, math.MaxInt64); l == nil || lease(t, k, "forever", 1, time.Second) != nil {
			t.Error("a long lease")
		}
	})
}

func TestLeaseAll(t *testing.T) {
	k := limit.NewLocal()
	limits := []limit.NamedLimit{{Key: "path", Limit: limit.Limit{N: 5}}, {Key: "shared", Limit: limit.Limit{N: 2}}}
	first, _, ok, err := limit.LeaseAll(t.Context(), k, limits, time.Minute)
	if !ok || err != nil {
		t.Fatal(err)
	}
	second, _, _, _ := limit.LeaseAll(t.Context(), k, limits, time.Minute)
	if _, key, ok, err := limit.LeaseAll(t.Context(), k, limits, time.Minute); ok || key != "shared" || err != nil {
		t.Errorf("TH-8: %q %v %v", key, ok, err)
	}
	first.Release()
	for range 3 { // the larger limit fails last, so the smaller has to be rolled back
		if lease(t, k, "path", 5, time.Minute) == nil {
			break
		}
	}
	for lease(t, k, "path", 5, time.Minute) != nil { // fill the larger one
	}
	for range 3 {
		if _, key, ok, _ := limit.LeaseAll(t.Context(), k, limits, time.Minute); ok || key != "path" {
			t.Errorf("no rollback: %q %v", key, ok)
		}
	}
	if err := second.Extend(t.Context()); err != nil {
		t.Error(err)
	}
	if l := lease(t, k, "shared", 2, time.Minute); l == nil {
		t.Error("the smaller limit was not rolled back")
	}
}

func TestAcquireWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := limit.NewLocal()
		held := lease(t, k, "k", 1, time.Hour)
		start := time.Now()
		done := make(chan time.Duration)
		go func() {
			l, err := k.Acquire(t.Context(), "k", limit.Limit{N: 1}, time.Minute)
			if err != nil || l == nil {
				t.Error(err)
			}
			done <- time.Since(start)
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		held.Release()
		if got := <-done; got != time.Second {
			t.Errorf("TH-7: woke after %v, released after 1s", got)
		}
		// The lease of the goroutine above is never released; it expires a minute later.
		if _, err := k.Acquire(t.Context(), "k", limit.Limit{N: 1}, time.Minute); err != nil || time.Since(start) != 61*time.Second {
			t.Errorf("TH-7: %v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := k.Acquire(ctx, "k", limit.Limit{N: 1}, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TH-7 deadline: %v", err)
		}
		select {
		case <-k.Released("free"):
		default:
			t.Error("a free limit is waited for")
		}
	})
}

// E1 under load: never more leases than the limit, and every waiter gets one.
func TestLeaseConcurrent(t *testing.T) {
	k := limit.NewLocal()
	var mu sync.Mutex
	running, most := 0, 0
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 20 {
				l, err := k.Acquire(t.Context(), "k", limit.Limit{N: 3}, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				mu.Lock()
				running--
				mu.Unlock()
				l.Release()
			}
		})
	}
	wg.Wait()
	if most > 3 {
		t.Errorf("E1: %d at once", most)
	}
	if r, l := k.Size(); r != 0 || l != 0 {
		t.Errorf("remembers %d and %d", r, l)
	}
}

func TestForgetsIdleKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := limit.NewLocal(), rate(t, "1/s")
		for round := range 20 {
			for i := range 20000 {
				take(t, k, fmt.Sprint(round, "/", i), r, 1)
				lease(t, k, fmt.Sprint(round, "/", i), 1, time.Second)
			}
			time.Sleep(2 * time.Second)
		}
		if rates, leases := k.Size(); rates > 60000 || leases > 60000 {
			t.Errorf("remembers %d rates and %d limits of 20000 that are in use", rates, leases)
		}
	})
}

func TestTakeDoesNotAllocate(t *testing.T) {
	k, r := limit.NewLocal(), rate(t, "1000000/s")
	take(t, k, "k", r, 1)
	if n := testing.AllocsPerRun(100, func() { take(t, k, "k", r, 1) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
