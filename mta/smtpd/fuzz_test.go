package smtpd

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

// script is a connection whose peer has said everything at once, in pieces.
type script struct {
	in    []byte
	piece int
	out   bytes.Buffer

	writes int
}

func (c *script) Read(p []byte) (int, error) {
	if len(c.in) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.piece)], c.in)
	c.in = c.in[n:]
	return n, nil
}
func (c *script) Write(p []byte) (int, error) {
	c.writes++
	return c.out.Write(p)
}
func (c *script) Close() error                     { return nil }
func (c *script) LocalAddr() net.Addr              { return tcpAddr(here) }
func (c *script) RemoteAddr() net.Addr             { return tcpAddr(trusted) }
func (c *script) SetDeadline(time.Time) error      { return nil }
func (c *script) SetReadDeadline(time.Time) error  { return nil }
func (c *script) SetWriteDeadline(time.Time) error { return nil }

// TestPipelining: RFC 2920 section 3.2, the replies to commands that came together leave together.
func TestPipelining(t *testing.T) {
	b := newBench(t)
	c := &script{piece: 4096, in: []byte("EHLO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nRCPT TO:<e@f.example>\r\n" +
		"DATA\r\nhi\r\n.\r\nMAIL FROM:<a@b.example>\r\nRSET\r\nQUIT\r\n")}
	b.srv.ServeConn(context.Background(), c)
	// The banner, everything up to 354, and the rest.
	if c.writes != 3 || !strings.HasSuffix(c.out.String(), "closing connection\r\n") {
		t.Fatalf("%d writes: %q", c.writes, c.out.String())
	}
}

// FuzzSession: whatever a client says, however it is cut, the session ends, every reply is well formed, no content with
// a lone CR or LF is taken in, and the replies do not depend on the cuts.
func FuzzSession(f *testing.F) {
	open := "MAIL FROM:<a@b.example>\r\nRCPT TO:<c@d.example>\r\nDATA\r\n"
	f.Add([]byte("EHLO x\r\n"+open+"hi\r\n.\r\nQUIT\r\n"), uint8(200))
	f.Add([]byte(open+"hi\n.\r\n.\r\n"+open+"\r\n..\r\n.\r\nRSET\r\nNOOP\r\n"), uint8(1))
	f.Add([]byte("STARTTLS\r\nQUIT\r\n"), uint8(9))
	f.Add([]byte("AUTH PLAIN\r\nVRFY a\r\nBDAT 3 LAST\r\nabc\r\n\x00\r\n"), uint8(3))
	b := newBench(f, bare, func(c *Config, _ *Options) { c.MaxMessageSize, c.MaxRecipientsPerMessage = 2000, 3 })
	run := func(t *testing.T, in []byte, piece int) string {
		b.in.msgs = nil
		c := &script{in: in, piece: piece}
		b.srv.ServeConn(context.Background(), c)
		for _, m := range b.in.all() {
			if s := strings.ReplaceAll(content(t, m), "\r\n", ""); strings.ContainsAny(s, "\r\n") {
				t.Fatalf("content %q", s)
			}
		}
		return c.out.String()
	}
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		if bytes.Contains(bytes.ToUpper(in), []byte("STARTTLS")) {
			run(t, in, int(piece)+1) // the handshake's alert is binary
			return
		}
		out := run(t, in, int(piece)+1)
		r := smtp.NewReader(strings.NewReader(out), 0)
		codes := 0
		for {
			_, err := r.ReadReply(smtp.ReplyLimits{})
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%v in %q", err, out)
			}
			codes++
		}
		if codes == 0 {
			t.Fatal("no reply at all")
		}
		again := run(t, in, 1<<20)
		if maskIDs(out) != maskIDs(again) {
			t.Fatalf("pieces of %d: %q, whole: %q", int(piece)+1, out, again)
		}
	})
}

// maskIDs cuts message IDs off, which differ.
func maskIDs(s string) string {
	lines := strings.Split(s, "\r\n")
	for i, l := range lines {
		lines[i], _, _ = strings.Cut(l, " ids=")
	}
	return strings.Join(lines, "\n")
}

// discard takes everything in and forgets it.
type discard struct{}

func (discard) Insert(_ context.Context, ms ...*mta.Message) error {
	for _, m := range ms {
		m.Release()
	}
	return nil
}
