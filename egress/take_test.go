package egress

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/limit"
	"example.com/svc/mta/settings"
	"example.com/svc/queue"
)

func TestRoundRobin(t *testing.T) {
	tests := []struct {
		name    string
		weights []int
		want    string
	}{
		{"SS-3 one", []int{5}, "0000000000"},
		{"SS-3 equal", []int{1, 1, 1}, "1201201201"},
		{"SS-3 weights", []int{4, 2, 1}, "1200010120"},
		{"SS-3 gcd", []int{50, 25}, "1001001001"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r roundRobin
			all := make([]int, len(tt.weights))
			sum, count := 0, make([]int, len(tt.weights))
			for i, w := range tt.weights {
				all[i] = i
				sum += w
			}
			var got strings.Builder
			for i := range 10 * sum {
				c := r.pick(tt.weights, all)
				count[c]++
				if i < 10 {
					fmt.Fprint(&got, c)
				}
			}
			for i, w := range tt.weights {
				if d := count[i] - 10*w; d < -w || d > w {
					t.Errorf("source %d was chosen %d of %d times", i, count[i], 10*sum)
				}
			}
			if got.String() != tt.want {
				t.Errorf("got %s", got.String())
			}
		})
	}
	var r roundRobin
	if r.pick(nil, nil) != -1 {
		t.Error("SS-7: something was picked from nothing")
	}
}

func TestIdealConnections(t *testing.T) {
	for _, tt := range []struct {
		waiting int
		limit   uint64
		want    int
	}{{0, 32, 0}, {1, 32, 1}, {2, 32, 2}, {10, 32, 7}, {100, 32, 29}, {1000, 32, 32}, {1 << 30, 32, 32}, {5, 1, 1},
		{3, 1 << 40, 3}, {3, 0, 0}} {
		if got := idealConnections(tt.waiting, tt.limit); got != tt.want {
			t.Errorf("RQ-3: %d waiting, limit %d: got %d, want %d", tt.waiting, tt.limit, got, tt.want)
		}
	}
}

func TestRing(t *testing.T) {
	var r ring
	var model []*queue.Ticket
	for i := range 5000 {
		tk := new(queue.Ticket)
		switch i % 7 {
		case 0, 1, 2, 4:
			r.push(tk)
			model = append(model, tk)
		case 3:
			r.unpop(tk)
			model = append([]*queue.Ticket{tk}, model...)
		case 5:
			if r.pop() != model[0] {
				t.Fatal("wrong first")
			}
			model = model[1:]
		case 6:
			if r.popBack() != model[len(model)-1] {
				t.Fatal("wrong last")
			}
			model = model[:len(model)-1]
		}
		if r.n != len(model) {
			t.Fatalf("%d of %d", r.n, len(model))
		}
	}
	for r.n > 0 {
		if r.pop() != model[0] {
			t.Fatal("RQ-1: wrong order")
		}
		model = model[1:]
	}
	if len(r.buf) != 0 {
		t.Error("an empty ring keeps a large buffer")
	}
}

// pools gives r a pool "p" of sources with weights.
func (r *rig) pools(names ...PoolEntry) {
	if err := GetPool.On(&r.bus, func(_ context.Context, name string) (*Pool, error) {
		if name == "bad" {
			return nil, errors.New("no such pool")
		}
		return &Pool{Name: name, Entries: names, TTL: settings.Duration(time.Minute)}, nil
	}); err != nil {
		r.t.Fatal(err)
	}
	if err := GetSource.On(&r.bus, func(_ context.Context, name string) (*Source, error) {
		return &Source{Name: name, TTL: settings.Duration(time.Minute), EHLODomain: name + ".test"}, nil
	}); err != nil {
		r.t.Fatal(err)
	}
	for _, d := range []string{"one.test", "bad.test"} {
		c := settings.New(func(c *queue.Config) { c.EgressPool = "p" })
		r.qconf[d] = &c
	}
	c := settings.New(func(c *queue.Config) { c.EgressPool = "bad" })
	r.qconf["bad.test"] = &c
}

func TestWeightedSources(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.pools(PoolEntry{"a", 3}, PoolEntry{"b", 1}, PoolEntry{"c", 0})
		r.take(400, "one.test")
		got := map[string]int{}
		for _, q := range r.m.ReadyQueues() {
			got[q.Name] = q.Waiting
		}
		r.want("SS-3", got, map[string]int{"a->mx1.test@smtp_client": 300, "b->mx1.test@smtp_client": 100})
		r.start()
		synctest.Wait()
	})
}

func TestFullQueues(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) { c.MaxReady = 3 })
		r.pools(PoolEntry{"a", 1}, PoolEntry{"b", 1})
		r.take(6, "one.test")
		err := r.m.Take(t.Context(), r.ticket("one.test"))
		var busy *queue.Busy
		if !errors.As(err, &busy) || busy.Error() != queue.ReadyQueueWasFull || busy.HasDelay {
			t.Errorf("SS-7: %v", err)
		}
		r.start()
		synctest.Wait()
		r.want("results", r.tally(), map[string]int{":250 delivered": 6})
	})
}

func TestUnroutable(t *testing.T) {
	hour := limit.Rate{Count: 2, Period: time.Hour}
	tests := []struct {
		name, domain, want string
		entries            []PoolEntry
		edit               func(*PathConfig)
		first              int
	}{
		{"SS-7 empty pool", "one.test", "no sources available", nil, nil, 0},
		{"SS-7 all weights 0", "one.test", "no sources available", []PoolEntry{{"a", 0}}, nil, 0},
		{"SS-6 selection rate", "one.test", "no sources for one.test are eligible", []PoolEntry{{"a", 1}, {"b", 1}},
			func(c *PathConfig) { c.SourceSelectionRate = &hour }, 4},
		{"SS-6 shared selection rate", "one.test", "no sources for one.test are eligible", []PoolEntry{{"a", 1}, {"b", 1}},
			func(c *PathConfig) { c.AdditionalSelectionRates = map[string]limit.Rate{"x": hour} }, 2},
		{"SQ-18 pool", "bad.test", "failed to resolve queue bad.test: egress pool", nil, nil, 0},
		{"SS-9 NXDOMAIN", "nowhere.test", "failed to resolve queue nowhere.test: dns", nil, nil, 0},
		{"SQ-18 no domain", "..", "failed to resolve queue", nil, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				if tt.edit == nil {
					tt.edit = func(*PathConfig) {}
				}
				r := newRig(t, tt.edit)
				r.pools(tt.entries...)
				r.take(tt.first, tt.domain)
				err := r.m.Take(t.Context(), r.ticket(tt.domain))
				var u *queue.Unroutable
				if !errors.As(err, &u) || u.Response.Code != 451 || u.Response.Enhanced.String() != "4.4.4" ||
					!strings.HasPrefix(u.Response.Content, mta.InternalPrefix+tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
				r.start()
				synctest.Wait()
				if n := r.tally()[":250 delivered"]; n != tt.first {
					t.Errorf("delivered %d of %d", n, tt.first)
				}
			})
		})
	}
}

func TestPathConfigErrorAndRefresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t).start()
		calls, fail := 0, false
		r.path = func(a PathArgs) *PathConfig {
			calls++
			if a.Site != "mx1.test" || a.RoutingDomain != "one.test" || a.Source != "unspecified" {
				t.Errorf("args %+v", a)
			}
			c := settings.New(func(c *PathConfig) { c.MaxReady = 10 + calls })
			if fail {
				return nil
			}
			return &c
		}
		r.take(1, "one.test")
		time.Sleep(time.Minute)
		r.take(1, "one.test")
		synctest.Wait()
		r.want("RQ-14 calls", calls, 2)
		r.want("RQ-14 config in force", r.m.ReadyQueues()[0].Config.MaxReady, 12)
	})
}

func TestShrunkQueueSendsOverflowBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		size := 20
		r := newRig(t)
		r.path = func(PathArgs) *PathConfig {
			c := settings.New(func(c *PathConfig) { c.MaxReady = size; c.RefreshStrategy = RefreshEpoch })
			return &c
		}
		hang := make(chan struct{})
		r.refuse = func(*Path) error { <-hang; return nil }
		r.start()
		r.take(20, "one.test")
		synctest.Wait()
		waiting := r.m.ReadyQueues()[0].Waiting
		size = 2
		r.m.o.Epoch.Bump()
		synctest.Wait()
		r.want("RQ-14", r.backWith(), map[string]int{queue.MaxReadyWasReducedByConfigUpdate: waiting - 2})
		close(hang)
		synctest.Wait()
	})
}

func TestUnusedQueueIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t).start()
		r.take(1, "one.test")
		time.Sleep(10 * time.Minute)
		r.want("RQ-15 kept", len(r.m.ReadyQueues()), 1)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		r.want("RQ-15 removed", len(r.m.ReadyQueues()), 0)
		var b strings.Builder
		_ = r.set.WritePrometheus(&b, "")
		if strings.Contains(b.String(), "unspecified->mx1.test") || strings.Contains(b.String(), `messages_delivered_by_provider{provider="mx1.test"}`) {
			t.Error("MT-8: series are left")
		}
		r.take(1, "one.test") // the selector of the scheduled queue still knows the old one
		synctest.Wait()
		r.want("results", r.tally(), map[string]int{":250 delivered": 2})
	})
}

func TestWatchdog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) { c.ConnectionLimit = limit.Limit{N: 1} })
		hang := true
		aborted := make(chan struct{}, 1)
		r.m.o.Openers[SMTPClient] = openerFunc(func(ctx context.Context, p *Path, c *PathConfig) (Carrier, error) {
			k, err := r.Open(ctx, p, c)
			return hangingConn{k.(*fakeConn), &hang, aborted}, err
		})
		r.start()
		r.take(1, "one.test")
		time.Sleep(19 * time.Minute)
		r.want("RQ-16 patience", r.backWith(), map[string]int{})
		time.Sleep(2 * time.Minute)
		r.want("RQ-16", r.backWith(), map[string]int{contextWatchdog: 1})
		<-aborted
		if x := r.returned[0]; x.Increment {
			t.Error("RQ-16: the attempt was counted")
		}
		r.take(1, "one.test")
		synctest.Wait()
		r.want("results", r.tally(), map[string]int{":250 delivered": 1})
	})
}

type openerFunc func(ctx context.Context, p *Path, c *PathConfig) (Carrier, error)

func (f openerFunc) Open(ctx context.Context, p *Path, c *PathConfig) (Carrier, error) {
	return f(ctx, p, c)
}

// hangingConn hangs once until its context ends.
type hangingConn struct {
	*fakeConn
	hang    *bool
	aborted chan struct{}
}

func (h hangingConn) Deliver(ctx context.Context, m *mta.Message, rs []mta.Address, out *Outcome) error {
	if !*h.hang {
		return h.fakeConn.Deliver(ctx, m, rs, out)
	}
	*h.hang = false
	<-ctx.Done()
	h.aborted <- struct{}{}
	out.Add(StageLocal, 0, rs, mta.Response{Code: 400})
	out.Broken, out.Transport = true, true
	return nil
}

func TestShutdown(t *testing.T) {
	tests := []struct {
		name   string
		takes  time.Duration // of the delivery in hand
		result map[string]int
		back   map[string]int
	}{
		{"SD-2 in time", 5 * time.Second, map[string]int{":250 delivered": 1}, map[string]int{contextShutdown: 9}},
		{"SD-2 too late", time.Hour, map[string]int{}, map[string]int{contextShutdown: 10}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				ten := settings.Duration(10 * time.Second)
				r := newRig(t, func(c *PathConfig) {
					c.ConnectionLimit = limit.Limit{N: 1}
					c.ShutdownTimeout = &ten
				})
				r.m.o.Openers[SMTPClient] = openerFunc(func(ctx context.Context, p *Path, c *PathConfig) (Carrier, error) {
					k, err := r.Open(ctx, p, c)
					return slowConn{k.(*fakeConn), tt.takes}, err
				})
				r.start()
				r.take(10, "one.test")
				time.Sleep(time.Second)
				start := time.Now()
				r.halt()
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("SD-2: took %s", took)
				}
				r.want("results", r.tally(), tt.result)
				r.want("SD-3 returned", r.backWith(), tt.back)
				r.want("closed", r.closedNow(), 1)
				err := r.m.Take(context.Background(), r.ticket("one.test"))
				var busy *queue.Busy
				if !errors.As(err, &busy) {
					t.Errorf("after the end: %v", err)
				}
			})
		})
	}
}

// slowConn takes its time.
type slowConn struct {
	*fakeConn
	takes time.Duration
}

func (s slowConn) Deliver(ctx context.Context, m *mta.Message, rs []mta.Address, out *Outcome) error {
	select {
	case <-time.After(s.takes):
		return s.fakeConn.Deliver(ctx, m, rs, out)
	case <-ctx.Done():
		out.Add(StageLocal, 0, rs, mta.Response{Code: 400})
		out.Broken, out.Transport = true, true
		return nil
	}
}

func TestIdleSessionsEndAtShutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t).start()
		r.take(50, "one.test")
		synctest.Wait()
		start := time.Now()
		r.halt()
		r.want("closed", r.closedNow(), r.connections())
		if took := time.Since(start); took > 0 {
			t.Errorf("took %s", took)
		}
	})
}

// TestManyProducers runs in real time, for the race detector.
func TestManyProducers(t *testing.T) {
	r := newRig(t, func(c *PathConfig) { c.MaxDeliveries = 7; c.MaxReady = 1 << 20 })
	r.start()
	const producers, each = 8, 200
	domains := []string{"one.test", "two.test", "far.test"}
	tickets := make([][]*queue.Ticket, producers)
	for p := range producers {
		for i := range each {
			tk := r.ticket(domains[i%3])
			tk.Selector = new(queue.Slot)
			tickets[p] = append(tickets[p], tk)
		}
	}
	done := make(chan error, producers)
	for p := range producers {
		go func() {
			for _, tk := range tickets[p] {
				if err := r.m.Take(context.Background(), tk); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range producers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	r.halt()
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := len(r.results) + len(r.returned); got != producers*each {
		t.Errorf("E2: %d of %d tickets came back", got, producers*each)
	}
	for q, n := range r.most {
		if n > 32 {
			t.Errorf("E1: %d connections of %s", n, q)
		}
	}
	for q, n := range r.open {
		if n != 0 {
			t.Errorf("%d connections of %s stay open", n, q)
		}
	}
}
