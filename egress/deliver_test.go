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

func TestDelivers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t).start()
		r.take(1, "one.test")
		synctest.Wait()
		r.want("results", r.tally(), map[string]int{":250 delivered": 1})
		rec := r.records[0]
		if rec.Site != "unspecified->mx1.test@smtp_client" || rec.EgressPool != "unspecified" ||
			rec.EgressSource != "unspecified" || rec.DeliveryProtocol != "ESMTP" || rec.Peer.Name != "mx1.test" ||
			len(rec.SessionID) != 36 {
			t.Errorf("QN-3: %+v", rec)
		}
		var b strings.Builder
		if err := r.set.WritePrometheus(&b, ""); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`total_messages_delivered{service="smtp_client:unspecified->mx1.test@smtp_client"} 1`,
			`total_messages_delivered{service="smtp_client"} 1`,
			`total_messages_delivered_by_provider{provider="mx1.test"} 1`,
			`total_messages_delivered_by_provider_and_source{provider="mx1.test",source="unspecified",pool="unspecified"} 1`,
			`connection_count{service="smtp_client"} 1`, `ready_count{service="smtp_client"} 0`,
			`queued_count_by_provider{provider="mx1.test"} 0`,
		} {
			if !strings.Contains(b.String(), want+"\n") {
				t.Errorf("MT-1: no %s", want)
			}
		}
	})
}

func TestConnectionsAreKeptAndClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) { c.MaxDeliveries = 3; c.ConnectionLimit = limit.Limit{N: 1} }).start()
		r.take(7, "one.test")
		synctest.Wait()
		r.want("RQ-8 connections", r.connections(), 3)
		r.want("open", r.openNow("unspecified->mx1.test@smtp_client"), 1)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		r.want("RQ-10 open after idle_timeout", r.openNow("unspecified->mx1.test@smtp_client"), 0)
		r.want("results", r.tally(), map[string]int{":250 delivered": 7})
	})
}

func TestConnectionLimitHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) {
			c.ConnectionLimit = limit.Limit{N: 10}
			c.AdditionalConnectionLimits = map[string]limit.Limit{"shared": {N: 6}}
		})
		r.deliver = func(_ *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) {
			time.Sleep(100 * time.Millisecond)
			out.Add(StageDot, 0, rs, mta.Response{Code: 250})
		}
		r.start()
		both := 0
		r.refuse = func(*Path) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			sum := 1
			for _, n := range r.open {
				sum += n
			}
			both = max(both, sum)
			return nil
		}
		for range 300 {
			r.take(1, "one.test")
			r.take(1, "far.test")
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		r.want("results", r.tally(), map[string]int{":250 delivered": 600})
		if both > 6 || both < 5 {
			t.Errorf("E1, RQ-5: %d connections at once, limit 6", both)
		}
	})
}

func TestMessageRateHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		rate := limit.Rate{Count: 10, Period: time.Second, Burst: 2}
		r := newRig(t, func(c *PathConfig) { c.MaxMessageRate = &rate }).start()
		r.take(100, "one.test")
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want("results", r.tally(), map[string]int{":250 delivered": 100})
		for i := range r.sent {
			for j := i + 1; j < len(r.sent); j++ {
				span := r.sent[j].Sub(r.sent[i])
				if n := j - i + 1; float64(n) > 2+span.Seconds()*10+0.001 {
					t.Fatalf("E1: %d messages within %s at %s", n, span, rate)
				}
			}
		}
		if took := r.sent[99].Sub(r.sent[0]); took > 11*time.Second {
			t.Errorf("RQ-11: took %s", took)
		}
	})
}

func TestLongWaitSendsBack(t *testing.T) {
	hour := limit.Rate{Count: 1, Period: time.Hour}
	tests := []struct {
		name   string
		edit   func(*PathConfig)
		reason string
	}{
		{"RQ-11 message rate", func(c *PathConfig) { c.MaxMessageRate = &hour }, queue.MessageRateThrottle},
		{"SC-8 connection rate", func(c *PathConfig) { c.MaxConnectionRate = &hour; c.MaxDeliveries = 1 }, queue.ConnectionRateThrottled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, tt.edit, func(c *PathConfig) { c.ConnectionLimit = limit.Limit{N: 1} }).start()
				r.take(5, "one.test")
				synctest.Wait()
				r.want("results", r.tally(), map[string]int{":250 delivered": 1})
				r.want("returned", r.backWith(), map[string]int{tt.reason: 4})
				if x := r.returned[0]; !x.HasDelay || x.Increment || x.Delay < 59*time.Minute || x.Delay > time.Hour {
					t.Errorf("%+v", x)
				}
			})
		})
	}
}

func TestSlowSiteHurtsNoOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		hang := make(chan struct{})
		r.deliver = func(c *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) {
			if c.p.Site == "mx3.test" {
				<-hang
			}
			out.Add(StageDot, 0, rs, mta.Response{Code: 250})
		}
		r.start()
		r.take(200, "far.test")
		r.take(200, "one.test")
		synctest.Wait()
		r.want("delivered while the other hangs", r.tally(), map[string]int{":250 delivered": 200})
		close(hang)
		time.Sleep(time.Minute)
		synctest.Wait()
		r.want("all", r.tally(), map[string]int{":250 delivered": 400})
	})
}

func TestPlanFailures(t *testing.T) {
	tests := []struct {
		name, domain string
		edit         func(*PathConfig)
		want         string
		contains     string
	}{
		{"SC-5 null MX", "null.test", nil, ":556 failed", ""},
		{"SC-5 prohibited", "loop.test", nil, ":550 failed", ""},
		{"SC-5 allowed", "loop.test", noSkip, ":250 delivered", ""},
		{"SC-5 no addresses", "lost.test", nil, ":451 transient", ""},
		{"SC-5 all skipped", "one.test", func(c *PathConfig) { c.SkipHosts, _ = cidrs("192.0.2.0/24") }, ":451 transient", ""},
		{"SC-5 some skipped", "two.test", func(c *PathConfig) { c.SkipHosts, _ = cidrs("192.0.2.1") }, ":250 delivered", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				if tt.edit == nil {
					tt.edit = func(*PathConfig) {}
				}
				r := newRig(t, tt.edit)
				r.take(3, tt.domain) // before Run: they wait
				r.start()
				synctest.Wait()
				r.want("results", r.tally(), map[string]int{tt.want: 3})
			})
		})
	}
}

func cidrs(ss ...any) (settings.CIDRs, error) {
	var c settings.CIDRs
	err := c.UnmarshalSetting(ss)
	return c, err
}

func TestConnectFailureTriesAllTargets(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var tried []string
		r.refuse = func(p *Path) error {
			tried = append(tried, p.Target.Addr.String())
			return errRefused
		}
		var got mta.Response
		r.start()
		tk := r.ticket("two.test")
		tk = queue.NewTicket(tk.Message, tk.Name, nil, func(_ context.Context, _ *mta.Record, rs []mta.Result) error {
			got = rs[0].Response
			return nil
		}, nil)
		if err := r.m.Take(t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.want("RQ-12 tried", tried, []string{"192.0.2.1", "192.0.2.2"})
		want := "svc internal: failed to connect to any candidate hosts: mx1.test (192.0.2.1): refused, mx2.test (192.0.2.2): refused"
		if got.Code != 400 || got.Content != want {
			t.Errorf("RQ-12: %v", got)
		}
	})
}

func TestManyFailuresDelayAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) { c.ConnectionLimit = limit.Limit{N: 1}; c.FailuresBeforeDelay = 3 })
		r.refuse = func(*Path) error { return errRefused }
		r.take(20, "one.test")
		r.start()
		synctest.Wait()
		r.want("RQ-12", r.tally(), map[string]int{":400 transient": 5, ":451 transient": 15})
	})
}

func TestClasses(t *testing.T) {
	rcpt := func(code int, e mta.EnhancedCode) func(rs []mta.Address, out *Outcome) {
		return func(rs []mta.Address, out *Outcome) {
			out.Add(StageRcpt, 1, rs, mta.Response{Code: code, Enhanced: e})
		}
	}
	dot := func(code int) func(rs []mta.Address, out *Outcome) {
		return func(rs []mta.Address, out *Outcome) { out.Add(StageDot, 0, rs, mta.Response{Code: code}) }
	}
	tests := []struct {
		name   string
		answer func(rs []mta.Address, out *Outcome)
		want   string
	}{
		{"SC-23 250", dot(250), ":250 delivered"},
		{"SC-23 451", dot(451), ":451 transient"},
		{"SC-23 503", dot(503), ":503 transient"},
		{"SC-23 550", dot(550), ":550 failed"},
		{"SC-23 552 to the dot", dot(552), ":552 failed"},
		{"SC-23 552 to RCPT", rcpt(552, mta.EnhancedCode{}), ":552 transient"},
		{"SC-23 5.5.3 to RCPT", rcpt(550, mta.EnhancedCode{Class: 5, Subject: 5, Detail: 3}), ":550 transient"},
		{"SC-23 552 5.2.2 to RCPT", rcpt(552, mta.EnhancedCode{Class: 5, Subject: 2, Detail: 2}), ":552 failed"},
		{"E4 a code that is none", dot(354), ":354 transient"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t)
				r.deliver = func(_ *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) { tt.answer(rs, out) }
				r.start()
				r.take(1, "one.test")
				synctest.Wait()
				r.want("results", r.tally(), map[string]int{tt.want: 1})
			})
		})
	}
}

func TestTooManyRecipientsAreTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) { c.MaxRecipients = 4 })
		var batches []string
		r.deliver = func(_ *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) {
			names := ""
			for i, a := range rs {
				names += a.Local
				if i >= 2 {
					out.Add(StageRcpt, i, rs[i:i+1], mta.Response{Code: 452, Content: "too many"})
				}
			}
			batches = append(batches, names)
			out.Add(StageDot, 0, rs[:min(2, len(rs))], mta.Response{Code: 250})
		}
		r.start()
		r.take(1, "one.test", "a", "b", "c", "d", "e", "f", "g")
		synctest.Wait()
		r.want("SC-14, SC-24 batches", batches, []string{"abcd", "efg", "cdg"})
		r.want("SC-28 results", r.tally(), map[string]int{"a+b+e+f+c+d:250 delivered": 1, "g:452 transient": 1})
	})
}

func TestReconnectStrategies(t *testing.T) {
	tests := []struct {
		strategy ReconnectStrategy
		want     string
	}{
		{ConnectNextHost, "192.0.2.1, 192.0.2.2, 192.0.2.1, 192.0.2.2"},
		{ReconnectSameHost, "192.0.2.1, 192.0.2.1, 192.0.2.1, 192.0.2.1"},
		{TerminateSession, "192.0.2.1, 192.0.2.1, 192.0.2.1, 192.0.2.1"},
	}
	for _, tt := range tests {
		t.Run("SC-26 "+string(tt.strategy), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := newRig(t, func(c *PathConfig) { c.Reconnect = tt.strategy; c.ConnectionLimit = limit.Limit{N: 1} })
				r.deliver = func(_ *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) {
					out.Add(StageMail, 0, rs, mta.Response{Code: 421, Content: "bye"})
					out.Broken = true
				}
				r.take(4, "two.test")
				r.start()
				synctest.Wait()
				r.want("targets", r.targets(), tt.want)
				r.want("results", r.tally(), map[string]int{":421 transient": 4})
				r.want("closed", r.closedNow(), 4)
			})
		})
	}
}

func TestIdleConnectionThatClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.deliver = func(c *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) {
			c.check = errors.New("gone")
			out.Add(StageDot, 0, rs, mta.Response{Code: 250})
		}
		r.start()
		r.take(1, "one.test")
		synctest.Wait()
		r.take(1, "one.test")
		synctest.Wait()
		r.want("SC-13", r.tally(), map[string]int{":250 delivered": 2})
		r.want("connections", r.connections(), 2)
		r.want("returned", r.backWith(), map[string]int{})
	})
}

func TestNextHostOnTransportError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) { c.TryNextHost = true })
		r.deliver = func(c *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) {
			if c.p.Target.Name == "mx1.test" {
				out.Add(StageLocal, 0, rs, mta.Response{Code: 400, Content: "reset"})
				out.Broken, out.Transport = true, true
				return
			}
			out.Add(StageDot, 0, rs, mta.Response{Code: 250})
		}
		r.start()
		ticket := r.ticket("two.test")
		if err := r.m.Take(context.Background(), ticket); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.want("SC-27", r.tally(), map[string]int{":250 delivered": 1})
		if n := ticket.Noted(); len(n) != 1 || n[0].Response.Code != 400 || n[0].Disposition != mta.Transient || len(n[0].Recipients) != 1 {
			t.Errorf("SC-27 noted %+v, want the failed attempt", n)
		}
		r.want("SC-27", r.targets(), []string{"192.0.2.1", "192.0.2.2"})
	})
}

func TestBrokenTLSIsAvoided(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) { c.ReconnectWithoutTLS = true })
		var avoid []string
		r.refuse = func(p *Path) error {
			avoid = append(avoid, fmt.Sprint(p.AvoidTLS))
			if !p.AvoidTLS {
				return &TLSError{Handshake: true, Err: errRefused}
			}
			return nil
		}
		r.start()
		r.take(1, "one.test")
		time.Sleep(2 * time.Minute) // idle: the next message needs a connection of its own
		r.take(1, "one.test")
		time.Sleep(15 * time.Minute)
		r.take(1, "one.test")
		synctest.Wait()
		r.want("TL-8, TL-9", avoid, []string{"false", "true", "true", "false", "true"})
		r.want("results", r.tally(), map[string]int{":250 delivered": 3})
	})
}

func TestRewriteStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		var seen RewriteArgs
		if err := RewriteDeliveryStatus.On(&r.bus, func(_ context.Context, a RewriteArgs) (int, error) {
			seen = a
			return 451, nil
		}); err != nil {
			t.Fatal(err)
		}
		r.deliver = func(_ *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) {
			out.Add(StageDot, 0, rs, mta.Response{Code: 550, Content: "line\nbreak"})
		}
		r.start()
		r.take(1, "one.test")
		synctest.Wait()
		r.want("SC-22", r.tally(), map[string]int{":451 transient": 1})
		if seen.Response != `550 line\r\nbreak` || seen.Domain != "one.test" || seen.RoutingDomain != "one.test" {
			t.Errorf("SC-22: %+v", seen)
		}
	})
}

func TestUnreadableData(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t).start()
		tk := r.ticket("one.test")
		m := tk.Message
		if err := m.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Shrink(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.store.Data.Delete(t.Context(), m.ID()); err != nil {
			t.Fatal(err)
		}
		if err := r.m.Take(t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		r.take(1, "one.test")
		synctest.Wait()
		r.want("corrupt", r.tally(), map[string]int{":550 failed": 1, ":250 delivered": 1})
	})
}

func TestPanicInCarrierCostsOneSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *PathConfig) { c.ConnectionLimit = limit.Limit{N: 1} })
		first := true
		r.deliver = func(_ *fakeConn, _ *mta.Message, rs []mta.Address, out *Outcome) {
			if first {
				first = false
				panic("bug")
			}
			out.Add(StageDot, 0, rs, mta.Response{Code: 250})
		}
		r.take(3, "one.test")
		r.start()
		synctest.Wait()
		r.want("results", r.tally(), map[string]int{":250 delivered": 2})
		r.want("returned", r.backWith(), map[string]int{queue.LoggedTransientFailure: 1})
		r.want("open", r.openNow("unspecified->mx1.test@smtp_client"), 0+1)
	})
}

func TestMessageWithoutRecipients(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t).start()
		tk := r.ticket("one.test")
		tk.Message.SetRecipients(nil)
		if err := r.m.Take(t.Context(), tk); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.want("results", r.tally(), map[string]int{":554 failed": 1})
	})
}
