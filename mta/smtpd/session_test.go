package smtpd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/spool"
)

// deliver sends one message and returns the reply to the content.
func (c *client) deliver(body string, rcpts ...string) string {
	c.t.Helper()
	c.ask("MAIL FROM:<a@send.example>", "250")
	for _, r := range rcpts {
		c.ask("RCPT TO:<"+r+">", "250")
	}
	c.ask("DATA", "354")
	c.raw(body + ".\r\n")
	return c.reply()
}

// TestEndOfDataInSession sends every way to surround a dot with CR, LF and CRLF: nothing but CRLF.CRLF may end the
// content, whatever the setting, and the session stays in step (SD1, W1).
func TestEndOfDataInSession(t *testing.T) {
	ends := []string{"", "\r", "\n", "\r\n", "\n\r", "\r\r", "\n\n", "\r\r\n", "\r\n\r", "\r\n\n", "\x00\r\n"}
	for _, mode := range []LineEndings{DenyEndings, AllowEndings, FixEndings} {
		b := newBench(t, bare, func(c *Config, _ *Options) { c.InvalidLineEndings = mode })
		c := b.dial(t, context.Background(), trusted)
		c.want("220")
		for _, before := range ends {
			for _, after := range ends {
				ended := strings.HasSuffix(before, "\r\n") && strings.HasPrefix(after, "\r\n")
				had := len(b.in.all())
				c.ask("MAIL FROM:<a@send.example>", "250")
				c.ask("RCPT TO:<b@dest.example>", "250")
				c.ask("DATA", "354")
				c.raw("x" + before + "." + after + "MAIL FROM:<smuggled@x.example>\r\n.\r\n")
				got := c.reply()
				name := fmt.Sprintf("%s %q", mode, before+"."+after)
				if !ended {
					broken := strings.ContainsAny(strings.ReplaceAll("x"+before+"."+after+"M", "\r\n", ""), "\r\n")
					if refused := strings.HasPrefix(got, "552 5.6.0"); refused != (broken && mode == DenyEndings) {
						t.Fatalf("%s: %q", name, got)
					}
				} else {
					// What follows the end is a command, and the dot after it no command at all.
					for range 1 + strings.Count(after[2:]+"\r\n.", "\r\n") {
						c.reply()
					}
				}
				c.ask("RSET", "250")
				for _, m := range b.in.all()[had:] {
					s := content(t, m)
					if mode != AllowEndings && strings.ContainsAny(strings.ReplaceAll(s, "\r\n", ""), "\r\n") {
						t.Fatalf("%s: a lone CR or LF got through: %q", name, s)
					}
					if m.Envelope().Sender.Local == "smuggled" {
						t.Fatalf("%s: smuggled", name)
					}
				}
			}
		}
		c.close()
	}
}

// TestNoOpenRelay: 13 forms of an address elsewhere, from a peer that is not trusted, with an empty policy.
func TestNoOpenRelay(t *testing.T) {
	forms := []string{
		"<a@else.example>", "<a@ELSE.example.>", "<@mx.test:a@else.example>", "<@mx.test,@b.example:a@else.example>",
		"<\"a@else.example\"@mx.test>", "<\"a@else.example\">", "<a%else.example@mx.test>", "<a%else.example@[192.0.2.25]>",
		"<else.example!a@mx.test>", "<a@else.example@mx.test>", "<a@[198.51.100.1]>", "<mx.test!a@else.example>", "<postmaster>",
	}
	for _, from := range []string{"<>", "<a@mx.test>", "<a@[192.0.2.25]>", "<a@else.example>"} {
		b := newBench(t)
		c := b.dial(t, context.Background(), untrusted)
		c.want("220")
		for _, form := range forms {
			c.ask("MAIL FROM:"+from, "250")
			c.ask("RCPT TO:"+form, "5")
			c.ask("DATA", "503")
			c.ask("RSET", "250")
		}
		c.close()
		if n := len(b.in.all()); n != 0 {
			t.Fatalf("%d messages accepted", n)
		}
	}
}

// TestInsertErrors: Q1, never 250 unless Insert took the message.
func TestInsertErrors(t *testing.T) {
	resolve := errors.New("no such pool")
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"SM-39 resolve", &mta.InsertError{Err: resolve, Failed: map[int]error{0: resolve}}, "421 4.3.0"},
		{"SM-39 shutting down", &mta.Refusal{Reason: "shutting down"}, "421 4.3.2 mx.test shutting down"},
		{"SM-41 save", &mta.InsertError{Err: errors.New("EIO")}, "451 4.3.0"},
		{"SM-41 deadline", &mta.InsertError{Err: context.DeadlineExceeded}, "451 4.4.5"},
		{"full", &mta.InsertError{Err: fmt.Errorf("put: %w", spool.ErrFull)}, "452 4.3.1"},
		{"SM-18 unhealthy", &mta.InsertError{Err: fmt.Errorf("put: %w", spool.ErrUnhealthy)}, "421 4.3.2"},
		{"all failed", &mta.InsertError{Failed: map[int]error{0: resolve, 1: resolve}}, "421 4.3.0"},
		{"all timed out", &mta.InsertError{Failed: map[int]error{0: context.DeadlineExceeded, 1: resolve}}, "4"},
		{"names nobody", &mta.InsertError{}, "451 4.3.0"},
		{"index out of range", &mta.InsertError{Failed: map[int]error{0: resolve, 1: resolve, 7: resolve}}, "421"},
		{"plain", errors.New("odd"), "421 4.3.0"},
		{"rejection", mta.Reject(550, "5.7.1 no"), "550 5.7.1 no"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			b.in.fail = func(context.Context, []*mta.Message) error { return tt.err }
			c := b.dial(t, context.Background(), trusted)
			defer c.close()
			c.want("220")
			if got := c.deliver("x\r\n", "b@dest.example", "c@dest.example"); !strings.HasPrefix(got, tt.want) {
				t.Fatalf("got %q", got)
			}
		})
	}
	t.Run("SM-45 partial", func(t *testing.T) {
		b := newBench(t)
		var ids []string
		b.in.fail = func(_ context.Context, ms []*mta.Message) error {
			for _, m := range ms {
				ids = append(ids, m.ID().String())
			}
			return &mta.InsertError{Failed: map[int]error{0: resolve}}
		}
		c := b.dial(t, context.Background(), trusted)
		defer c.close()
		c.want("220")
		got := c.deliver("x\r\n", "b@dest.example", "c@dest.example")
		if got != "250 PARTIAL ids="+ids[1] {
			t.Fatalf("got %q", got)
		}
	})
	t.Run("SM-32 processing timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			OnData.On(b.bus, func(ctx context.Context, _ Received) (event.None, error) {
				<-ctx.Done()
				return event.None{}, ctx.Err()
			})
			c := b.dial(t, context.Background(), trusted)
			defer c.close()
			c.want("220")
			begin := time.Now()
			if got := c.deliver("x\r\n", "b@dest.example"); !strings.HasPrefix(got, "451 4.4.5") {
				t.Fatalf("got %q", got)
			}
			if d := time.Since(begin); d != 5*time.Minute {
				t.Fatal(d)
			}
		})
	})
}

// TestMessage: envelope, trace headers, metadata and the reception record of what arrives.
func TestMessage(t *testing.T) {
	b := newBench(t, func(c *Config, _ *Options) {
		c.Meta = map[string]any{"x_site": "one"}
		c.TraceHeaders.IncludeMetaNames = []string{"x_site", "x_unset"}
		c.MaxMessageSize = 1 << 20
	})
	c := b.dial(t, context.Background(), trusted)
	c.want("220")
	c.ask("EHLO client.example", "250")
	body := "Subject: dots\r\n\r\n..one\r\n...two\r\n" + strings.Repeat("0123456789\r\n", 20_000)
	if got := c.deliver(body, "b@dest.example", "\"c d\"@Dest.example"); !strings.HasPrefix(got, "250 OK ids=") {
		t.Fatal(got)
	}
	c.close()
	msgs := b.in.all()
	if len(msgs) != 2 || msgs[0].ID() == msgs[1].ID() {
		t.Fatalf("%d messages", len(msgs))
	}
	for i, to := range []string{"b@dest.example", "\"c d\"@Dest.example"} {
		m := msgs[i]
		if rs := m.Envelope().Recipients; len(rs) != 1 || rs[0].String() != to || m.Envelope().Sender.String() != "a@send.example" {
			t.Fatalf("envelope %v", m.Envelope())
		}
		head, rest, _ := strings.Cut(content(t, m), "Received:")
		name, b64, _ := strings.Cut(head, ":")
		if name != "X-SvcRef" || !strings.HasSuffix(b64, "\r\n") {
			t.Fatalf("SM-48: %q", head)
		}
		for _, line := range strings.Split(head, "\r\n") {
			if len(line) > 76 {
				t.Errorf("SM-48: line of %d", len(line))
			}
		}
		for _, want := range []string{" from client.example (127.0.0.1)\r\n", "by mx.test (svc 192.0.2.25)", "with ESMTP\r\n",
			"id " + m.ID().String(), "for <" + to + ">;"} {
			if !strings.Contains(rest, want) {
				t.Errorf("SM-38: no %q in %q", want, rest[:300])
			}
		}
		if want := strings.ReplaceAll(body, "\r\n.", "\r\n"); !strings.HasSuffix(rest, "\r\n"+want) {
			t.Error("SM-29: content differs")
		}
		meta, _ := m.Meta(context.Background())
		for key, want := range map[string]string{mta.MetaReceptionProtocol: "ESMTP", mta.MetaReceivedVia: here,
			mta.MetaReceivedFrom: trusted, mta.MetaHostname: "mx.test", mta.MetaEHLODomain: "client.example", "x_site": "one"} {
			if got := meta.String(key); got != want {
				t.Errorf("SM-3: %s is %q", key, got)
			}
		}
		r := m.TakeReception()
		if r == nil || r.Type != mta.Reception || r.Peer.Name != "client.example" || r.SessionID == "" || r.ReceptionProtocol != "ESMTP" {
			t.Errorf("reception %+v", r)
		}
	}
}

func TestBatches(t *testing.T) {
	rcpts := []string{"a@One.example", "b@two.example", "c@one.example"}
	run := func(t *testing.T, edit func(*Config, *Options), on func(*bench)) []string {
		b := newBench(t, edit)
		if on != nil {
			on(b)
		}
		c := b.dial(t, context.Background(), trusted)
		c.want("220")
		c.deliver("x\r\n", rcpts...)
		c.close()
		var got []string
		for _, m := range b.in.all() {
			var g []string
			for _, r := range m.Envelope().Recipients {
				g = append(g, r.String())
			}
			got = append(got, strings.Join(g, " "))
		}
		return got
	}
	t.Run("SM-36 BifurcateAlways", func(t *testing.T) {
		if got := run(t, bare, nil); strings.Join(got, "|") != strings.Join(rcpts, "|") {
			t.Fatal(got)
		}
	})
	t.Run("SM-36 BatchByDomain", func(t *testing.T) {
		got := run(t, func(c *Config, _ *Options) { c.BatchHandling = BatchByDomain }, nil)
		if strings.Join(got, "|") != "a@One.example c@one.example|b@two.example" {
			t.Fatal(got)
		}
	})
	t.Run("SM-36 event", func(t *testing.T) {
		got := run(t, bare, func(b *bench) {
			OnSplitTransaction.On(b.bus, func(_ context.Context, a Received) ([][]mta.Address, error) {
				rs := a.Message.Envelope().Recipients
				return [][]mta.Address{rs[:1], nil, rs[1:]}, nil
			})
		})
		if strings.Join(got, "|") != "a@One.example|b@two.example c@one.example" {
			t.Fatal(got)
		}
	})
}

// TestRejectionRecords: SM-20, SM-5.
func TestRejectionRecords(t *testing.T) {
	b := newBench(t)
	c := b.dial(t, context.Background(), untrusted)
	c.want("220")
	c.ask("EHLO client.example", "250")
	c.ask("MAIL FROM:<a@send.example>", "250")
	c.ask("RCPT TO:<b@dest.example>", "550")
	c.ask("AUTH PLAIN AGEAc2VjcmV0", "503")
	c.close()
	rs := b.journal.all()
	if len(rs) != 2 {
		t.Fatalf("%d records", len(rs))
	}
	r := rs[0]
	if r.Type != mta.RejectionRecord || r.Sender != "a@send.example" || len(r.Recipients) != 0 || r.SessionID == "" ||
		r.Response.String() != "550 5.7.1 relaying not permitted for 203.0.113.9:40000" ||
		r.Response.Command != "RCPT TO:<b@dest.example>" || r.Peer.Name != "client.example" || r.Peer.Addr.String() != "203.0.113.9" {
		t.Errorf("%+v", r)
	}
	if cmd := rs[1].Response.Command; cmd != "AUTH PLAIN" {
		t.Errorf("credentials in a record: %q", cmd)
	}
	if n := b.srv.inst.rejectedAll.Value(); n != 2 {
		t.Errorf("counted %d", n)
	}
	if n := b.srv.inst.rejections.With(here).Value(); n != 2 {
		t.Errorf("counted %d for the listener", n)
	}

	g := newBench(t, func(_ *Config, o *Options) {
		o.Gate = func() *mta.Refusal { return &mta.Refusal{Reason: "load shedding. Try later", Denied: true} }
	})
	c = g.dial(t, context.Background(), trusted)
	c.want("421 4.3.2 mx.test load shedding. Try later", "EOF")
	c.close()
	if len(g.journal.all()) != 0 || g.srv.inst.denied.Value() != 1 {
		t.Error("SM-4, SM-5: recorded, or not counted")
	}
}

func TestLoop(t *testing.T) {
	for _, n := range []int{100, 101} {
		b := newBench(t)
		c := b.dial(t, context.Background(), trusted)
		c.want("220")
		body := strings.Repeat("received: from x\r\n\tby y\r\n", n) + "\r\n" + strings.Repeat("Received: no\r\n", 200)
		want := map[int]string{100: "250", 101: "554 5.4.6"}[n] // choices 10
		if got := c.deliver(body, "b@dest.example"); !strings.HasPrefix(got, want) {
			t.Errorf("%d: %q", n, got)
		}
		c.close()
	}
}

// TestDomainAnswersAreKept: RL-9.
func TestDomainAnswersAreKept(t *testing.T) {
	b := newBench(t)
	calls := map[string]int{}
	GetListenerDomain.On(b.bus, func(_ context.Context, q DomainQuestion) (*ListenerDomain, error) {
		calls[q.Domain]++
		if q.Listener != here {
			t.Errorf("listener %q", q.Listener)
		}
		return &ListenerDomain{RelayTo: true}, nil
	})
	c := b.dial(t, context.Background(), untrusted)
	c.want("220")
	for range 3 {
		c.deliver("x\r\n", "b@dest.example", "c@dest.example")
	}
	for i := range 40 {
		c.ask("MAIL FROM:<>", "250")
		c.ask(fmt.Sprintf("RCPT TO:<b@d%d.example>", i), "250")
		c.ask("RSET", "250")
	}
	c.close()
	if calls["dest.example"] != 1 || calls["send.example"] != 1 {
		t.Error(calls)
	}
}
