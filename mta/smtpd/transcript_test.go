package smtpd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
	"example.com/svc/spool"
)

// policies are what a transcript can ask for by name.
var policies = map[string]func(*bench){
	"local-domain": localDomain,
	"reject-banner": func(b *bench) {
		OnConnectionAccepted.On(b.bus, func(context.Context, *mta.Session) (event.None, error) {
			return event.None{}, mta.Reject(550, "5.7.1 go away")
		})
	},
	"ehlo": func(b *bench) {
		OnEHLO.On(b.bus, func(_ context.Context, a EHLO) ([]string, error) {
			if a.Domain == "bad.example" {
				return nil, mta.Reject(550, "5.7.1 bad name")
			}
			return []string{"PIPELINING", "X-OURS"}, nil
		})
	},
	"by-sender": func(b *bench) { // what happens is in the local part of the sender
		OnMailFrom.On(b.bus, func(_ context.Context, a MailFrom) (event.None, error) {
			switch a.Sender.Local {
			case "reject":
				return event.None{}, mta.Reject(550, "5.7.1 not you\nand never\ryou")
			case "shut":
				return event.None{}, mta.Reject(421, "4.7.0 later")
			case "force":
				return event.None{}, mta.Disconnect(550, "5.7.1 out", mta.ForceDisconnect)
			case "follow":
				return event.None{}, mta.Disconnect(550, "5.7.1 out", mta.FollowWith421)
			case "error":
				return event.None{}, errors.New("policy is broken")
			case "unhealthy":
				return event.None{}, fmt.Errorf("save: %w", spool.ErrUnhealthy)
			case "panic":
				panic("policy panics")
			case "odd":
				return event.None{}, mta.Reject(250, "no refusal at all")
			}
			return event.None{}, nil
		})
	},
	"rcpt": func(b *bench) {
		OnRcptTo.On(b.bus, func(_ context.Context, a RcptTo) (event.None, error) {
			if a.Recipient.Local == "closed" {
				return event.None{}, mta.Reject(550, "5.1.1 mailbox closed")
			}
			return event.None{}, nil
		})
	},
	"late": func(b *bench) {
		OnMessageReceived.On(b.bus, func(_ context.Context, a Received) (event.None, error) {
			switch a.Message.Envelope().Recipients[0].Local {
			case "late":
				return event.None{}, mta.Reject(550, "5.7.1 no such content")
			case "null":
				return event.None{}, a.Message.SetMeta(context.Background(), mta.MetaQueue, "null")
			}
			return event.None{}, nil
		})
	},
	"elsewhere": func(b *bench) { // policy changes the recipient into one that may not be relayed to
		localDomain(b)
		OnData.On(b.bus, func(_ context.Context, a Received) (event.None, error) {
			a.Message.SetRecipients([]mta.Address{{Local: "a", Domain: "elsewhere.example"}})
			return event.None{}, nil
		})
	},
	"rewrite": func(b *bench) {
		OnRewriteResponse.On(b.bus, func(_ context.Context, a Outgoing) (Rewritten, error) {
			switch {
			case strings.HasPrefix(a.Response, "5.5.1"):
				return Rewritten{Status: 421, Response: "4.7.0 that is it, " + a.Command}, nil
			case a.Status == 503:
				return Rewritten{Status: 250, Response: "2.0.0 a lie"}, nil
			case a.Status == 501:
				return Rewritten{}, errors.New("broken")
			}
			return Rewritten{}, nil
		})
	},
	"no-batches": func(b *bench) {
		OnSplitTransaction.On(b.bus, func(context.Context, Received) ([][]mta.Address, error) {
			return [][]mta.Address{}, nil
		})
	},
}

// localDomain: dest.example is ours; 203.0.113.0/24 may send as send.example
func localDomain(b *bench) {
	GetListenerDomain.On(b.bus, func(_ context.Context, q DomainQuestion) (*ListenerDomain, error) {
		switch strings.ToLower(q.Domain) {
		case "dest.example":
			return &ListenerDomain{RelayTo: true}, nil
		case "send.example":
			p, _ := settings.ParseCIDR("203.0.113.0/24")
			return &ListenerDomain{RelayFrom: settings.CIDRs{p}}, nil
		case "broken.example":
			return nil, mta.Reject(550, "5.0.0 never seen")
		}
		return nil, nil
	})
}

// TestTranscripts plays testdata/*.txt. "C:" lines that follow each other go out in one write; "S:" lines are wanted,
// "*" at their end standing for anything; "S: EOF" wants the end. A "--" line begins another session, whose directives
// are config (JSON), peer and policy; its name follows the dashes.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range strings.Split("\n"+string(text), "\n--")[1:] {
			name, script, _ := strings.Cut(part, "\n")
			t.Run(strings.TrimSpace(name), func(t *testing.T) { play(t, strings.Split(script, "\n")) })
		}
	}
}

func play(t *testing.T, script []string) {
	peer := trusted
	var todo []func(*bench)
	var edit []func(*Config, *Options)
	for len(script) > 0 && !strings.HasPrefix(script[0], "S:") {
		word, rest, _ := strings.Cut(script[0], " ")
		switch word {
		case "peer":
			peer = rest
		case "policy":
			p, ok := policies[rest]
			if !ok {
				t.Fatalf("no policy %q", rest)
			}
			todo = append(todo, p)
		case "config":
			edit = append(edit, func(c *Config, _ *Options) {
				tree, err := settings.ParseJSON("config", []byte(rest))
				if err == nil {
					err = settings.Overlay("start_esmtp_listener", tree, c)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
		}
		script = script[1:]
	}
	b := newBench(t, edit...)
	for _, p := range todo {
		p(b)
	}
	c := b.dial(t, context.Background(), peer)
	defer c.close()
	var out strings.Builder
	flush := func() {
		if out.Len() > 0 {
			c.raw(out.String())
			out.Reset()
		}
	}
	for i, line := range script {
		switch {
		case strings.HasPrefix(line, "C: "):
			s := strings.NewReplacer(`\0`, "\x00", `\r`, "\r", `\n`, "\n", `\xff`, "\xff").Replace(line[3:])
			s = strings.Replace(s, "(long)", strings.Repeat("x", 1200), 1)
			out.WriteString(s + "\r\n")
		case line == "C:":
			out.WriteString("\r\n")
		case strings.HasPrefix(line, "S: "):
			flush()
			got, ok := <-c.lines
			if !ok {
				got = "EOF"
			}
			want, open := strings.CutSuffix(line[3:], "*")
			if got != want && !(open && strings.HasPrefix(got, want)) {
				t.Fatalf("line %d: got %q, want %q", i+1, got, line[3:])
			}
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#"):
			t.Fatalf("line %d: what is %q?", i+1, line)
		}
	}
	flush()
}
