package smtpc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/egress"
	"example.com/svc/egress/dial"
	"example.com/svc/egress/route"
	"example.com/svc/mta"
	"example.com/svc/mta/settings"
	"example.com/svc/spool/memory"
)

// peer is the other end of a connection in a test.
type peer struct {
	net.Conn
	br *bufio.Reader
}

func (p *peer) say(s string) { _, _ = io.WriteString(p.Conn, s) }

// hear reads one line; eof at the end.
func (p *peer) hear() string {
	s, err := p.br.ReadString('\n')
	if err != nil {
		return eof
	}
	return strings.TrimRight(s, "\r\n")
}

const eof = "\x00eof"

// hearTo reads lines until one begins with prefix.
func (p *peer) hearTo(prefix string) bool {
	for {
		s := p.hear()
		if s == eof {
			return false
		}
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
}

// ready plays the greeting with the given extensions.
func (p *peer) ready(ext ...string) {
	p.say("220 mx.example ESMTP\r\n")
	p.hearTo("EHLO")
	p.say("250-mx.example hello\r\n")
	for _, e := range ext {
		p.say("250-" + e + "\r\n")
	}
	p.say("250 HELP\r\n")
}

// accept answers MAIL and n RCPT with 250 and DATA with 354, in pipelining.
func (p *peer) accept(n int) {
	p.hearTo("DATA")
	p.say("250 ok\r\n" + strings.Repeat("250 ok\r\n", n) + "354 go\r\n")
}

func testStore() *mta.Store { return mta.NewStore(memory.New(), memory.New(), nil, nil) }

func addr(s string) mta.Address {
	a, err := mta.ParseAddress(s)
	if err != nil {
		panic(err)
	}
	return a
}

func addrs(ss ...string) (out []mta.Address) {
	for _, s := range ss {
		out = append(out, addr(s))
	}
	return out
}

// open connects to a peer that runs play. The peer has ended when the test ends.
func open(t testing.TB, c *egress.PathConfig, play func(p *peer)) (egress.Carrier, error) {
	t.Helper()
	client, server := memPipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer server.Close()
		play(&peer{server, bufio.NewReader(server)})
	}()
	o := New(Options{Dialer: dial.Dialer{Network: func(context.Context, dial.Request) (net.Conn, error) { return client, nil }}})
	k, err := o.Open(t.Context(), testPath(), c)
	t.Cleanup(func() {
		if err == nil {
			_ = k.Close()
		}
		server.Close()
		<-done
	})
	return k, err
}

func testPath() *egress.Path {
	return &egress.Path{Queue: "q", Site: "mx.example", Protocol: egress.SMTPClient, Hello: "client.example", Port: 25,
		Target: route.Target{Name: "mx.example", Addr: netip.MustParseAddr("192.0.2.1")}}
}

func testConfig(edit ...func(*egress.PathConfig)) *egress.PathConfig {
	c := settings.New(edit...)
	return &c
}

const testBody = "Subject: x\r\n\r\nhello\r\n"

// outcome delivers one message to two recipients.
func outcome(t testing.TB, k egress.Carrier, body string) *egress.Outcome {
	t.Helper()
	rs := addrs("a@example.com", "b@example.com")
	m := testStore().New(mta.Envelope{Sender: addr("s@example.org"), Recipients: rs}, []byte(body))
	var out egress.Outcome
	if err := k.Deliver(t.Context(), m, rs, &out); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range out.Replies {
		n += len(r.Recipients)
	}
	if n != len(rs) {
		t.Errorf("%d of %d recipients have an answer: %+v", n, len(rs), out.Replies)
	}
	return &out
}

// text shows an outcome as "code stage recipients", joined.
func text(out *egress.Outcome) string {
	var parts []string
	for _, r := range out.Replies {
		names := ""
		for _, a := range r.Recipients {
			names += a.Local
		}
		parts = append(parts, fmt.Sprintf("%d/%d %s", r.Response.Code, r.Stage, names))
	}
	if out.Broken {
		parts = append(parts, "broken")
	}
	return strings.Join(parts, ", ")
}

const pipe = "PIPELINING"

var hostile = []struct {
	name string
	play func(p *peer)
	// openErr is part of the error of Open; want is the outcome of a delivery.
	openErr, want string
	within        time.Duration
}{
	{"endless banner", func(p *peer) {
		for {
			if _, err := p.Write([]byte("220-hello\r\n")); err != nil {
				return
			}
		}
	}, "malformed reply", "", time.Minute},
	{"no banner", func(p *peer) { p.hear() }, "timed out", "", time.Minute},
	{"banner byte by byte", func(p *peer) {
		for {
			time.Sleep(time.Second)
			if _, err := p.Write([]byte("2")); err != nil {
				return
			}
		}
	}, "timed out", "", time.Minute},
	{"1 MB banner", func(p *peer) { p.say("220 " + strings.Repeat("x", 1<<20) + "\r\n") }, "without an end", "", time.Minute},
	{"SC-9 banner 554", func(p *peer) { p.say("554 go away\r\n") }, "554 go away", "", 0},
	{"banner 250", func(p *peer) { p.say("250 hello\r\n") }, "250 hello", "", 0},
	{"no SMTP at all", func(p *peer) { p.say("HTTP/1.1 400 Bad Request\r\n\r\n") }, "malformed reply", "", 0},
	{"close at once", func(p *peer) {}, "EOF", "", 0},
	{"SC-10 EHLO refused", func(p *peer) { p.say("220 x\r\n"); p.hear(); p.say("502 no\r\n"); p.hear() }, "502 no", "", 0},
	{"wrong code in a continuation", func(p *peer) { p.say("220 x\r\n"); p.hear(); p.say("250-a\r\n550 b\r\n"); p.hear() },
		"malformed reply", "", 0},
	{"EHLO line repeated 100000 times", func(p *peer) {
		p.say("220 x\r\n")
		p.hear()
		for range 100000 {
			if _, err := p.Write([]byte("250-SIZE\r\n")); err != nil {
				return
			}
		}
	}, "malformed reply", "", 0},
	{"escape in the banner", func(p *peer) { p.say("554 \x1b[2J\x00\r\n") }, `554 \x1b[2J\x00`, "", 0},

	{"250 to DATA", func(p *peer) {
		p.ready(pipe)
		p.hearTo("DATA")
		p.say("250 ok\r\n250 ok\r\n250 ok\r\n250 ok\r\n")
		p.hear()
	}, "", "400/0 ab, broken", 0},
	{"354 to RCPT", func(p *peer) {
		p.ready(pipe)
		p.hearTo("DATA")
		p.say("250 ok\r\n354 go\r\n250 ok\r\n354 go\r\n")
		p.hear()
	}, "", "400/0 ab, broken", 0},
	{"354 to MAIL", func(p *peer) { p.ready(); p.hear(); p.say("354 go\r\n"); p.hear() }, "", "400/0 ab, broken", 0},
	{"421 to MAIL", func(p *peer) { p.ready(); p.hear(); p.say("421 4.3.2 bye\r\n") }, "", "421/1 ab, broken", 0},
	{"421 to the second RCPT", func(p *peer) {
		p.ready(pipe)
		p.hearTo("DATA")
		p.say("250 ok\r\n550 no\r\n421 bye\r\n")
	}, "", "550/2 a, 421/2 b, broken", 0},
	{"421 to DATA", func(p *peer) { p.ready(pipe); p.hearTo("DATA"); p.say("250 ok\r\n250 ok\r\n250 ok\r\n421 bye\r\n") },
		"", "421/3 ab, broken", 0},
	{"421 to the dot", func(p *peer) { p.ready(pipe); p.accept(2); p.hearTo("."); p.say("421 bye\r\n") }, "", "421/4 ab, broken", 0},
	{"close after the dot", func(p *peer) { p.ready(pipe); p.accept(2); p.hearTo(".") }, "", "400/0 ab, broken", 0},
	{"SC-21 no reply to the dot", func(p *peer) { p.ready(pipe); p.accept(2); p.hearTo("."); p.hear() }, "", "421/0 ab, broken",
		10 * time.Minute},
	{"SC-21 no reply to MAIL", func(p *peer) { p.ready(); p.hear(); p.hear() }, "", "421/0 ab, broken", 5 * time.Minute},
	{"3xx to the dot", func(p *peer) { p.ready(pipe); p.accept(2); p.hearTo("."); p.say("354 more\r\n"); p.hear() },
		"", "400/0 ab, broken", 0},
	{"too few replies, then silence", func(p *peer) { p.ready(pipe); p.hearTo("DATA"); p.say("250 ok\r\n250 ok\r\n"); p.hear() },
		"", "421/0 ab, broken", 5 * time.Minute},
	{"reply to the dot byte by byte", func(p *peer) {
		p.ready(pipe)
		p.accept(2)
		p.hearTo(".")
		for {
			time.Sleep(time.Second)
			if _, err := p.Write([]byte("2")); err != nil {
				return
			}
		}
	}, "", "421/0 ab, broken", 10 * time.Minute},
	{"endless reply to RCPT", func(p *peer) {
		p.ready(pipe)
		p.hearTo("DATA")
		p.say("250 ok\r\n")
		for {
			if _, err := p.Write([]byte("250-x\r\n")); err != nil {
				return
			}
		}
	}, "", "400/0 ab, broken", 0},
	{"reset in DATA", func(p *peer) { p.ready(pipe); p.accept(2); p.hear() }, "", "400/0 ab, broken", 0},
	{"SIZE 1", func(p *peer) { p.ready("SIZE 1"); p.hear() }, "", "552/0 ab", 0},
	{"SIZE 0 is no limit", func(p *peer) { p.ready("SIZE 0", pipe); p.accept(2); p.hearTo("."); p.say("250 ok\r\n"); p.hear() },
		"", "250/4 ab", 0},
	{"SIZE garbage is no limit", func(p *peer) { p.ready("SIZE x", pipe); p.accept(2); p.hearTo("."); p.say("250 ok\r\n"); p.hear() },
		"", "250/4 ab", 0},
	{"552 to MAIL", func(p *peer) { p.ready(); p.hear(); p.say("552 5.3.4 big\r\n"); p.hear() }, "", "552/1 ab", 0},
	{"NUL in a reply", func(p *peer) { p.ready(); p.hear(); p.say("550 a\x00b\x1b\r\n"); p.hear() }, "", "550/1 ab", 0},
	{"SC-17 354 although all RCPT failed", func(p *peer) {
		p.ready(pipe)
		p.hearTo("DATA")
		p.say("250 ok\r\n550 no\r\n550 no\r\n354 go\r\n")
		if p.hear() == "." {
			p.say("554 no recipients\r\n")
		}
		p.hear()
	}, "", "550/2 a, 550/2 b", 0},
	{"SC-17 354 although MAIL failed", func(p *peer) {
		p.ready(pipe)
		p.hearTo("DATA")
		p.say("550 no\r\n503 no\r\n503 no\r\n354 go\r\n")
		if p.hear() == "." {
			p.say("250 queued\r\n")
		}
		p.hear()
	}, "", "550/1 ab", 0},
	{"SC-19 one RCPT refused", func(p *peer) {
		p.ready(pipe)
		p.hearTo("DATA")
		p.say("250 ok\r\n550 no\r\n251 will forward\r\n354 go\r\n")
		p.hearTo(".")
		p.say("250 ok\r\n")
		p.hear()
	}, "", "550/2 a, 250/4 b", 0},
	{"SC-19 DATA refused", func(p *peer) {
		p.ready(pipe)
		p.hearTo("DATA")
		p.say("250 a\r\n250 a\r\n250 a\r\n451 no\r\n")
		p.hear()
	},
		"", "451/3 ab", 0},
}

func TestHostileServers(t *testing.T) {
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				k, err := open(t, testConfig(), tt.play)
				if tt.openErr != "" {
					if err == nil || !strings.Contains(err.Error(), tt.openErr) {
						t.Fatalf("got %v, want an error with %q", err, tt.openErr)
					}
				} else if err != nil {
					t.Fatal(err)
				} else if got := text(outcome(t, k, testBody)); got != tt.want {
					t.Errorf("got %q, want %q", got, tt.want)
				}
				if took := time.Since(start); took > tt.within {
					t.Errorf("C2: took %s, want at most %s", took, tt.within)
				}
			})
		})
	}
}

func TestSilentReaderIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := open(t, testConfig(), func(p *peer) {
			p.ready(pipe)
			p.accept(2)
			time.Sleep(time.Hour) // never reads the content
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		out := outcome(t, k, strings.Repeat("x\r\n", 1<<20))
		if got := text(out); got != "421/0 ab, broken" {
			t.Errorf("SC-21: %s", got)
		}
		if took := time.Since(start); took > 6*time.Minute {
			t.Errorf("C2: took %s", took)
		}
	})
}

func TestReasonBeforeReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := open(t, testConfig(), func(p *peer) {
			p.ready(pipe)
			p.accept(2)
			p.say("552 5.3.4 too big\r\n")
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := text(outcome(t, k, strings.Repeat("x\r\n", 1<<20))); got != "552/4 ab, broken" {
			t.Errorf("got %s", got)
		}
	})
}

func TestDeliverEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, err := open(t, testConfig(), func(p *peer) { p.ready(pipe); p.accept(1); p.hearTo("."); p.hear() })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		rs := addrs("a@example.com")
		m := testStore().New(mta.Envelope{Recipients: rs}, []byte(testBody))
		var out egress.Outcome
		start := time.Now()
		if err := k.Deliver(ctx, m, rs, &out); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 3*time.Second || !out.Broken {
			t.Errorf("C2: ended after %s, broken %v", took, out.Broken)
		}
	})
}

func TestCheckFindsUnsolicitedInput(t *testing.T) {
	tests := []struct {
		name string
		then func(p *peer)
		ok   bool
	}{
		{"SC-13 silence", func(p *peer) { p.hear() }, true},
		{"SC-13 421", func(p *peer) { p.say("421 idle too long\r\n"); p.hear() }, false},
		{"SC-13 half a line", func(p *peer) { p.say("42"); p.hear() }, false},
		{"SC-13 close", func(p *peer) {}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, err := open(t, testConfig(), func(p *peer) { p.ready(); tt.then(p) })
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if err := k.Check(t.Context()); (err == nil) != tt.ok {
					t.Errorf("got %v, want ok %v", err, tt.ok)
				}
			})
		})
	}
}

func TestOpenIsTLSError(t *testing.T) {
	tests := []struct {
		name, mode string
		play       func(p *peer)
		handshake  bool
	}{
		{"TL-2 not offered", "Required", func(p *peer) { p.ready(); p.hear() }, false},
		{"TL-2 not offered, insecure", "RequiredInsecure", func(p *peer) { p.ready(); p.hear() }, false},
		{"TL-1 STARTTLS refused", "Opportunistic", func(p *peer) { p.ready("STARTTLS"); p.hear(); p.say("454 no\r\n"); p.hear() }, true},
		{"plain text instead of a handshake", "Required", func(p *peer) {
			p.ready("STARTTLS")
			p.hear()
			p.say("220 go\r\n")
			buf := make([]byte, 4096)
			_, _ = p.br.Read(buf)
			p.say("250-PIPELINING\r\n250 SIZE 1\r\n")
			_, _ = p.br.Read(buf)
		}, true},
		{"silence in the handshake", "Required", func(p *peer) {
			p.ready("STARTTLS")
			p.hear()
			p.say("220 go\r\n")
			_, _ = io.Copy(io.Discard, p.br)
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := open(t, testConfig(func(c *egress.PathConfig) { c.EnableTLS = egress.TLSMode(tt.mode) }), tt.play)
				var e *egress.TLSError
				if !errors.As(err, &e) || e.Handshake != tt.handshake {
					t.Errorf("got %v", err)
				}
				if took := time.Since(start); took > 30*time.Second {
					t.Errorf("C2: took %s", took)
				}
			})
		})
	}
}
