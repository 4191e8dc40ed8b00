package smtpd

import (
	"context"
	"strings"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
)

// TestOrderOfEvents: events.tsv, SMTP 2 to 10, with the messages as each event sees them.
func TestOrderOfEvents(t *testing.T) {
	b := newBench(t)
	var got []string
	note := func(parts ...string) { got = append(got, strings.Join(parts, " ")) }
	shape := func(m *mta.Message) string {
		s := content(t, m)
		head := "plain"
		if strings.HasPrefix(s, "Received:") {
			head = "traced"
		}
		meta, _ := m.Meta(context.Background())
		return head + " " + meta.String("x_conn") + " " + m.Envelope().Recipients[0].Local
	}
	OnConnectionAccepted.On(b.bus, func(_ context.Context, s *mta.Session) (event.None, error) {
		note("accepted", s.Peer.String(), s.Local.String())
		s.Meta.Set("x_conn", "1")
		return event.None{}, nil
	})
	OnEHLO.On(b.bus, func(_ context.Context, a EHLO) ([]string, error) {
		note("ehlo", a.Domain, a.Session.Hello)
		return nil, event.Pass
	})
	OnMailFrom.On(b.bus, func(_ context.Context, a MailFrom) (event.None, error) {
		note("mail_from", a.Sender.String(), a.Session.Hello)
		return event.None{}, nil
	})
	GetListenerDomain.On(b.bus, func(_ context.Context, a DomainQuestion) (*ListenerDomain, error) {
		note("domain", a.Domain)
		return nil, nil
	})
	OnRcptTo.On(b.bus, func(_ context.Context, a RcptTo) (event.None, error) {
		note("rcpt_to", a.Recipient.String())
		return event.None{}, nil
	})
	OnData.On(b.bus, func(_ context.Context, a Received) (event.None, error) {
		note("data", shape(a.Message))
		return event.None{}, nil
	})
	OnSplitTransaction.On(b.bus, func(_ context.Context, a Received) ([][]mta.Address, error) {
		note("split", shape(a.Message))
		return nil, event.Pass
	})
	OnMessageReceived.On(b.bus, func(_ context.Context, a Received) (event.None, error) {
		note("received", shape(a.Message))
		return event.None{}, nil
	})
	b.in.fail = func(_ context.Context, ms []*mta.Message) error {
		note("insert")
		return nil
	}
	c := b.dial(t, context.Background(), trusted)
	c.want("220")
	c.ask("EHLO client.example", "250")
	c.deliver("x\r\n", "b@dest.example", "c@dest.example")
	c.close()
	want := `accepted 127.0.0.1:40000 192.0.2.25:25
ehlo client.example 
mail_from a@send.example client.example
domain send.example
domain dest.example
rcpt_to b@dest.example
rcpt_to c@dest.example
data plain 1 b
split plain 1 b
received traced 1 b
received traced 1 c
insert`
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s", s)
	}
}

func TestCounters(t *testing.T) {
	b := newBench(t)
	c := b.dial(t, context.Background(), trusted)
	c.want("220")
	for range 3 {
		c.deliver("x\r\n", "b@dest.example", "c@dest.example")
	}
	c.deliver("a\nb\r\n", "b@dest.example") // refused while reading
	if n := b.srv.inst.connections.Value(); n != 1 {
		t.Errorf("connections %v", n)
	}
	c.close()
	in := b.srv.inst
	if a, l := in.receivedAll.Value(), in.received.With(service+":"+here).Value(); a != 3 || l != 3 {
		t.Errorf("SM-33: received %d, %d for the listener", a, l)
	}
	if in.read.Count() != 4 || in.process.Count() != 3 || in.whole.Count() != 4 || in.accepted.Value() != 1 || in.connections.Value() != 0 {
		t.Errorf("read %d, processed %d, transactions %d", in.read.Count(), in.process.Count(), in.whole.Count())
	}
}

// TestMessagesAreReleased: no message object stays behind when content is refused.
func TestMessagesAreReleased(t *testing.T) {
	alive := func(b *bench) float64 {
		return b.set.Gauge("message_count", "Message objects alive in any state").With().Value()
	}
	for _, local := range []string{"late", "null"} {
		b := newBench(t)
		policies["late"](b)
		b.in.fail = func(context.Context, []*mta.Message) error { return &mta.InsertError{Err: context.Canceled} }
		c := b.dial(t, context.Background(), trusted)
		c.want("220")
		c.deliver("x\r\n", "b@dest.example", local+"@dest.example", "c@dest.example")
		c.close()
		if n := alive(b); n != 0 {
			t.Errorf("%s: %v messages alive", local, n)
		}
	}
	b := newBench(t)
	policies["elsewhere"](b)
	c := b.dial(t, context.Background(), untrusted)
	c.want("220")
	c.ask("MAIL FROM:<a@x.example>", "250")
	c.ask("RCPT TO:<b@dest.example>", "250")
	c.ask("DATA", "354")
	c.ask("x\r\n.", "550 5.7.1")
	c.close()
	if n := alive(b); n != 0 {
		t.Errorf("%v messages alive", n)
	}
	// SM-42: the reception of a message that is then refused is recorded, before the rejection.
	rs := b.journal.all()
	if len(rs) != 2 || rs[0].Type != mta.Reception || rs[0].Recipients[0] != "a@elsewhere.example" || rs[0].Size == 0 ||
		rs[1].Type != mta.RejectionRecord || rs[1].Response.Command != "DATA" || rs[1].Recipients[0] != "b@dest.example" {
		t.Errorf("records %+v", rs)
	}
}

// TestFix: SM-34.
func TestFix(t *testing.T) {
	b := newBench(t, bare, func(c *Config, _ *Options) { c.InvalidLineEndings = FixEndings })
	c := b.dial(t, context.Background(), trusted)
	c.want("220")
	c.deliver("a\nb\rc\r\r\n\n.\nd\r\n", "b@dest.example")
	c.close()
	if got := content(t, b.in.all()[0]); got != "a\r\nb\r\nc\r\n\r\n\r\n.\r\nd\r\n" {
		t.Errorf("%q", got)
	}
}

func TestGateWithinSession(t *testing.T) {
	full := false
	b := newBench(t, func(_ *Config, o *Options) {
		o.Gate = func() *mta.Refusal {
			if full {
				return &mta.Refusal{Reason: "disk is too full. Try later", Denied: true}
			}
			return nil
		}
	})
	c := b.dial(t, context.Background(), trusted)
	c.want("220")
	c.deliver("x\r\n", "b@dest.example")
	full = true
	c.ask("MAIL FROM:<a@send.example>", "421 4.3.2 mx.test disk is too full")
	c.want("EOF")
	c.close()
}

func TestAuthAnswerFromScript(t *testing.T) {
	var a AuthAnswer
	if err := a.UnmarshalSetting(true); err != nil || !a.OK || a.Info != nil {
		t.Errorf("true: %+v %v", a, err)
	}
	if err := a.UnmarshalSetting(false); err != nil || a.OK {
		t.Errorf("false: %+v %v", a, err)
	}
	err := a.UnmarshalSetting(map[string]any{"groups": []any{"g"},
		"identities": []any{map[string]any{"identity": "x", "context": mta.ContextAuthn}}})
	if err != nil || len(a.Info.Identities) != 1 || a.Info.Groups[0] != "g" {
		t.Errorf("table: %+v %v", a, err)
	}
	if err := a.UnmarshalSetting("yes"); err == nil {
		t.Error("a string passed")
	}
}
