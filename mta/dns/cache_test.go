package dns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	wire "github.com/miekg/dns"
)

// fake is a server at the other end of in-memory connections. answer fills the
// reply; returning false is silence.
type fake struct {
	asked  atomic.Int32
	wg     sync.WaitGroup
	answer func(m *wire.Msg) bool
}

func (f *fake) dial(context.Context, string, Server) (net.Conn, error) {
	client, server := net.Pipe()
	f.wg.Go(func() {
		defer server.Close()
		buf := make([]byte, 4096)
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		f.asked.Add(1)
		q, m := new(wire.Msg), new(wire.Msg)
		if q.Unpack(buf[:n]) != nil {
			return
		}
		if !f.answer(m.SetReply(q)) {
			_, _ = io.Copy(io.Discard, server)
			return
		}
		b, err := m.Pack()
		if err == nil {
			_, _ = server.Write(b)
		}
	})
	return client, nil
}

func (f *fake) stub(t *testing.T, edit func(*StubConfig)) *Stub {
	t.Helper()
	c := DefaultStubConfig()
	c.Servers = []Server{{Addr: netip.MustParseAddrPort("192.0.2.53:53"), Protocol: UDPOnly}}
	c.Dial, c.Hosts = f.dial, HostsNever
	if edit != nil {
		edit(&c)
	}
	s, err := NewStub(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); f.wg.Wait() })
	return s
}

func mustRR(t testing.TB, s string) wire.RR {
	t.Helper()
	rr, err := wire.NewRR(s)
	if err != nil {
		t.Fatal(err)
	}
	return rr
}

// TestTTL checks D1: what is kept ends with its TTL, and the TTL handed out is
// what is left.
func TestTTL(t *testing.T) {
	for _, c := range []struct {
		name  string
		ttl   uint32
		wait  time.Duration
		left  time.Duration // of the second answer
		asked int32
	}{
		{"within", 60, 59 * time.Second, time.Second, 1},
		{"at the end", 60, 60 * time.Second, 60 * time.Second, 2},
		{"TTL 0 is not kept", 0, 0, 0, 2},
		{"TTL 2^31 is capped", 1 << 31, 24*time.Hour - time.Second, time.Second, 1},
		{"TTL 2^31 ends", 1 << 31, 24 * time.Hour, 24 * time.Hour, 2},
		{"TTL 2^32-1 is capped", 1<<32 - 1, 0, 24 * time.Hour, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(m *wire.Msg) bool {
					rr := mustRR(t, "a.test. 1 IN A 192.0.2.1")
					rr.Header().Ttl = c.ttl
					m.Answer = []wire.RR{rr}
					return true
				}}
				s := f.stub(t, nil)
				if _, err := s.Lookup(t.Context(), "a.test", TypeA); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.wait)
				ans, err := s.Lookup(t.Context(), "A.test.", TypeA)
				if err != nil || ans.TTL != c.left {
					t.Errorf("TTL %v, %v; want %v", ans.TTL, err, c.left)
				}
				if n := f.asked.Load(); n != c.asked {
					t.Errorf("asked %d times, want %d", n, c.asked)
				}
			})
		})
	}
}

func TestClamps(t *testing.T) {
	l := limits{posMin: 10 * time.Second, posMax: time.Minute, negMin: 5 * time.Second, negMax: 20 * time.Second}
	for _, c := range [][2]time.Duration{
		{l.positive(1), 10 * time.Second}, {l.positive(30), 30 * time.Second}, {l.positive(1 << 31), time.Minute},
		{l.negative(0), 5 * time.Second}, {l.negative(10), 10 * time.Second}, {l.negative(1 << 31), 20 * time.Second},
	} {
		if c[0] != c[1] {
			t.Errorf("%v, want %v", c[0], c[1])
		}
	}
}

func TestNegativeCache(t *testing.T) {
	const soa = "test. 300 IN SOA ns. root. 1 2 3 4 30"
	for _, c := range []struct {
		name  string
		fill  func(t *testing.T, m *wire.Msg)
		kind  Kind
		kept  time.Duration // 0 is not at all
		asked int32         // per lookup
	}{
		{"RFC 2308 section 5: the smaller of TTL and minimum", func(t *testing.T, m *wire.Msg) {
			m.Rcode, m.Ns = wire.RcodeNameError, []wire.RR{mustRR(t, soa)}
		}, NXDomain, 30 * time.Second, 1},
		{"no data", func(t *testing.T, m *wire.Msg) { m.Ns = []wire.RR{mustRR(t, soa)} }, NoData, 30 * time.Second, 1},
		{"without SOA it is not kept", func(_ *testing.T, m *wire.Msg) { m.Rcode = wire.RcodeNameError }, NXDomain, 0, 1},
		{"an alias that ends earlier", func(t *testing.T, m *wire.Msg) {
			m.Rcode, m.Ns = wire.RcodeNameError, []wire.RR{mustRR(t, soa)}
			m.Answer = []wire.RR{mustRR(t, "a.test. 7 IN CNAME b.test.")}
		}, NXDomain, 7 * time.Second, 1},
		{"SERVFAIL is not kept long", func(_ *testing.T, m *wire.Msg) { m.Rcode = wire.RcodeServerFailure }, ServFail, 5 * time.Second, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(m *wire.Msg) bool { c.fill(t, m); return true }}
				s := f.stub(t, nil)
				ask := func(times int32, ttl time.Duration) {
					t.Helper()
					_, err := s.Lookup(t.Context(), "a.test", TypeA)
					var e *Error
					if !errors.As(err, &e) || e.Kind != c.kind || e.TTL != ttl {
						t.Errorf("%v with TTL %v, want kind %v with %v", err, e.TTL, c.kind, ttl)
					}
					if n := f.asked.Load(); n != times*c.asked {
						t.Errorf("asked %d times, want %d", n, times*c.asked)
					}
				}
				ask(1, c.kept)
				if c.kept == 0 {
					ask(2, 0)
					return
				}
				time.Sleep(c.kept - time.Second)
				ask(1, time.Second)
				time.Sleep(time.Second)
				ask(2, c.kept)
			})
		})
	}
}

func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(*wire.Msg) bool { return false }}
		s := f.stub(t, nil)
		start := time.Now()
		_, err := s.Lookup(t.Context(), "a.test", TypeA)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Timeout || !e.Timeout() {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("took %v, want 2 attempts of 5 s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		if _, err = s.Lookup(ctx, "b.test", TypeA); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("took %v, want the caller's 1 s", d)
		}
	})
}

// TestSlowChain checks that aliases do not make a lookup last for ever.
func TestSlowChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		f := &fake{}
		f.answer = func(m *wire.Msg) bool {
			time.Sleep(9 * time.Second)
			m.Answer = []wire.RR{mustRR(t, fmt.Sprintf("%s 60 IN CNAME c%d.test.", m.Question[0].Name, n.Add(1)))}
			return true
		}
		s := f.stub(t, func(c *StubConfig) { c.Timeout = 10 * time.Second })
		start := time.Now()
		_, err := s.Lookup(t.Context(), "a.test", TypeA)
		var e *Error
		if d := time.Since(start); d != maxLookup || !errors.As(err, &e) || e.Kind != Timeout {
			t.Errorf("%v after %v, want a timeout after %v", err, d, maxLookup)
		}
	})
}

// TestInFlight checks D2 and D3: one question for all who ask, which survives
// the one who began it, and ends when all have left.
func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		f := &fake{answer: func(m *wire.Msg) bool {
			<-release
			m.Answer = []wire.RR{mustRR(t, "a.test. 60 IN A 192.0.2.1")}
			return true
		}}
		s := f.stub(t, nil)
		first, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 10)
		ask := func(ctx context.Context) {
			_, err := s.Lookup(ctx, "a.test", TypeA)
			errs <- err
		}
		go ask(first)
		synctest.Wait()
		for range 9 {
			go ask(t.Context())
		}
		synctest.Wait()
		cancel()
		if err := <-errs; !errors.Is(err, context.Canceled) {
			t.Errorf("the one who left: %v", err)
		}
		close(release)
		for range 9 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		if n := f.asked.Load(); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(*wire.Msg) bool { return false }}
		s := f.stub(t, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _, _ = s.Lookup(ctx, "a.test", TypeA) }()
		synctest.Wait()
		cancel()
		<-done
		s.wg.Wait() // at once, not after 10 s
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.calls) != 0 {
			t.Errorf("%d lookups in flight that nobody waits for", len(s.calls))
		}
		if _, _, ok := s.cache.get(key{"a.test", TypeA}); ok {
			t.Error("a cancelled lookup was kept")
		}
	})
}

func TestCacheBound(t *testing.T) {
	c := newCache(64)
	for i := range 1000 {
		c.put(key{fmt.Sprintf("n%d.test", i), TypeA}, Answer{TTL: time.Hour}, nil)
		if _, _, ok := c.get(key{"n0.test", TypeA}); !ok { // used all the time
			t.Fatalf("the entry used last was dropped at %d", i)
		}
	}
	if n := c.len(); n > 64 {
		t.Errorf("%d entries, want at most 64", n)
	}
	c.put(key{"n0.test", TypeA}, Answer{Name: "new", TTL: time.Hour}, nil)
	if ans, _, _ := c.get(key{"n0.test", TypeA}); ans.Name != "new" {
		t.Error("a newer answer did not replace the older one")
	}
}

func TestOrdering(t *testing.T) {
	var o ordering
	o.rtt = make([]atomic.Int64, 3)
	o.observe(0, 30*time.Millisecond)
	o.observe(1, 10*time.Millisecond)
	o.observe(2, 20*time.Millisecond)
	if got := fmt.Sprint(o.next(QueryStatistics), o.next(UserProvidedOrder)); got != "[1 2 0] [0 1 2]" {
		t.Error(got)
	}
	var p ordering
	p.rtt = make([]atomic.Int64, 3)
	if got := fmt.Sprint(p.next(RoundRobin), p.next(RoundRobin), p.next(RoundRobin), p.next(RoundRobin)); got != "[0 1 2] [1 2 0] [2 0 1] [0 1 2]" {
		t.Error(got)
	}
	slow := 0
	for range 64 {
		if o.next(QueryStatistics)[0] == 0 {
			slow++
		}
	}
	if slow != 2 {
		t.Errorf("the slow server was tried first %d times in 64, want 2", slow)
	}
}
