package smtpd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"example.com/svc/mta"
	"example.com/svc/mta/settings"
)

// start runs a server on loopback until the test ends.
func (b *bench) start(t testing.TB) string {
	t.Helper()
	if err := b.srv.Listen(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.srv.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b.srv.Addr().String()
}

func onLoopback(c *Config, _ *Options) { c.Listen = "127.0.0.1:0" }

// allowAnn accepts one pair of credentials and one with identities of its own.
func allowAnn(b *bench) {
	OnAuthPlain.On(b.bus, func(_ context.Context, a AuthPlain) (AuthAnswer, error) {
		switch {
		case a.Authc == "ann" && a.Password == "secret":
			return AuthAnswer{OK: true}, nil
		case a.Authc == "bob":
			return AuthAnswer{Info: &mta.Auth{Groups: []string{"g"},
				Identities: []mta.Identity{{Identity: "robert", Context: "LocalSystem"}}}}, nil
		case a.Authc == "nobody":
			return AuthAnswer{Info: new(mta.Auth)}, nil
		case a.Authc == "error":
			return AuthAnswer{}, errors.New("no database")
		}
		return AuthAnswer{}, nil
	})
}

// TestIndependentPeer delivers with another implementation, over TLS and with AUTH.
func TestIndependentPeer(t *testing.T) {
	b := newBench(t, onLoopback)
	allowAnn(b)
	addr := b.start(t)
	c, err := gosmtp.DialStartTLS(addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Auth(sasl.NewPlainClient("", "ann", "wrong")); err == nil || !strings.Contains(err.Error(), "AUTH invalid") {
		t.Fatal(err)
	}
	if err := c.Auth(sasl.NewPlainClient("", "ann", "secret")); err != nil {
		t.Fatal(err)
	}
	body := "Subject: x\r\n\r\n.dot\r\n" + strings.Repeat("line\r\n", 100_000)
	for range 3 {
		if err := c.SendMail("a@send.example", []string{"b@dest.example", "c@dest.example"}, strings.NewReader(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Quit(); err != nil {
		t.Fatal(err)
	}
	msgs := b.in.all()
	if len(msgs) != 6 {
		t.Fatalf("%d messages", len(msgs))
	}
	text := content(t, msgs[0])
	if !strings.HasSuffix(text, body) || !strings.Contains(text, "with ESMTPSA (TLSv1.3:TLS_") {
		t.Errorf("SM-38: %q", text[:400])
	}
	meta, _ := msgs[0].Meta(context.Background())
	if meta.String(mta.MetaAuthnID) != "ann" || meta.String(mta.MetaAuthzID) != "ann" || meta.String(mta.MetaTLSVersion) != "TLSv1.3" {
		t.Errorf("metadata %v", meta.Map())
	}
	if r := msgs[0].TakeReception(); r.TLS == nil || r.TLS.Version != "TLSv1.3" {
		t.Errorf("record %+v", r)
	}
}

// plainLine reads one line byte by byte, so that nothing of a handshake is swallowed.
func plainLine(t *testing.T, conn net.Conn) string {
	t.Helper()
	var line []byte
	var b [1]byte
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			t.Fatal(err)
		}
		line = append(line, b[0])
	}
	return string(line)
}

// secure opens a session over TLS; injected goes out in one write with STARTTLS.
func secure(t *testing.T, addr, injected string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	plainLine(t, conn)
	_, _ = io.WriteString(conn, "HELO clear.example\r\n")
	plainLine(t, conn)
	_, _ = io.WriteString(conn, "MAIL FROM:<a@send.example>\r\n")
	plainLine(t, conn)
	_, _ = io.WriteString(conn, "STARTTLS\r\n"+injected)
	if got := plainLine(t, conn); !strings.HasPrefix(got, "220") {
		t.Fatal(got)
	}
	tc := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := tc.Handshake(); err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, conn: tc, lines: make(chan string, 100)}
	go c.read(tc)
	return c
}

// TestStartTLS: SD2, SM-21, SM-23.
func TestStartTLS(t *testing.T) {
	b := newBench(t, onLoopback)
	addr := b.start(t)
	c := secure(t, addr, "RCPT TO:<injected@x.example>\r\nNOOP\r\n")
	c.ask("RCPT TO:<b@dest.example>", "503") // the transaction is forgotten, and no other reply came before
	c.send("EHLO client.example")
	var offers []string
	for {
		line := <-c.lines
		offers = append(offers, line[4:])
		if line[3] == ' ' {
			break
		}
	}
	if got := strings.Join(offers[1:], ","); got != "PIPELINING,ENHANCEDSTATUSCODES,8BITMIME,SMTPUTF8,SIZE 20971520,AUTH PLAIN" {
		t.Errorf("offers %s", got)
	}
	c.ask("STARTTLS", "501")
	c.ask("QUIT", "221")

	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	plainLine(t, conn)
	_, _ = io.WriteString(conn, "STARTTLS\r\n")
	plainLine(t, conn)
	_, _ = io.WriteString(conn, "EHLO in.the.clear.example\r\nNOOP\r\n") // no handshake: the connection closes
	rest, _ := io.ReadAll(conn)
	if bytes.Contains(rest, []byte("250")) {
		t.Errorf("went on in the clear: %q", rest)
	}
}

// TestAuthPlain: SM-25.
func TestAuthPlain(t *testing.T) {
	b := newBench(t, onLoopback)
	allowAnn(b)
	addr := b.start(t)
	enc := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	c := secure(t, addr, "")
	c.ask("AUTH PLAIN !!!", "501 5.5.2")
	c.ask("AUTH PLAIN "+enc("a\x00b"), "501 5.5.2")
	c.ask("AUTH PLAIN "+enc("a\x00b\x00c\x00d"), "501 5.5.2")
	c.ask("AUTH PLAIN "+enc("\x00\xff\x00c"), "501 5.5.2")
	c.ask("AUTH PLAIN =", "501 5.5.2")
	c.ask("AUTH plain", "334 ")
	c.ask("*", "501 5.5.0")
	c.ask("AUTH PLAIN", "334 ")
	c.ask(strings.Repeat("A", 17000), "501 5.5.2")
	c.ask("AUTH PLAIN "+enc("\x00ann\x00wrong"), "535 5.7.8")
	c.ask("AUTH CRAM-MD5", "504 5.5.4")
	c.ask("MAIL FROM:<a@send.example>", "250")
	c.ask("AUTH PLAIN "+enc("\x00ann\x00secret"), "503 5.5.1")
	c.ask("RSET", "250")
	c.ask("AUTH PLAIN", "334 ")
	c.ask(enc("\x00bob\x00x"), "235 2.7.0")
	c.ask("AUTH PLAIN "+enc("\x00ann\x00secret"), "503 5.5.1")
	if got := c.deliver("x\r\n", "b@dest.example"); !strings.HasPrefix(got, "250 OK") {
		t.Fatal(got)
	}
	m := b.in.all()[0]
	if s := content(t, m); strings.Contains(s, "clear.example") || !strings.Contains(s, "Received: from unspecified ") {
		t.Errorf("SD2: the name given in the clear is remembered: %q", s)
	}
	if r := m.TakeReception(); r.Peer.Name != "" {
		t.Errorf("SD2: recorded %q", r.Peer.Name)
	}
	meta, _ := b.in.all()[0].Meta(context.Background())
	if meta.String(mta.MetaAuthnID) != "robert" || meta.String(mta.MetaAuthzID) != "robert" {
		t.Errorf("metadata %v", meta.Map())
	}
	for _, r := range b.journal.all() {
		if strings.Contains(r.Response.Command, enc("\x00ann")[:6]) {
			t.Errorf("credentials in a record: %q", r.Response.Command)
		}
	}

	for _, who := range []string{"nobody", "error"} {
		c := secure(t, addr, "")
		c.ask("AUTH PLAIN "+enc("\x00"+who+"\x00x"), "421 4.3.0")
		c.want("EOF")
	}
	c = secure(t, addr, "")
	for range maxAuthFailed {
		c.ask("AUTH PLAIN "+enc("\x00eve\x00x"), "535")
	}
	c.want("421 4.7.0", "EOF")
}

// TestCertificate: SM-24, the files are read again after five minutes.
func TestCertificate(t *testing.T) {
	pemOf := func(host string) (cert, key []byte) {
		pair, err := selfSigned(host, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
			pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	}
	cert, key := pemOf("one.example")
	cfg := settings.New(func(c *Config) {
		c.TLSCertificate, c.TLSPrivateKey = settings.KeySource{Data: cert}, settings.KeySource{Data: key}
	})
	k, err := newTLSKeeper(&cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	name := func() string {
		c, err := k.certificate(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		x, _ := x509.ParseCertificate(c.Certificate[0])
		return x.Subject.CommonName
	}
	k.cfg.TLSCertificate.Data, k.cfg.TLSPrivateKey.Data = pemOf("two.example")
	if got := name(); got != "one.example" {
		t.Errorf("read again too early: %s", got)
	}
	k.read = k.read.Add(-certificateAge)
	if got := name(); got != "two.example" {
		t.Errorf("not read again: %s", got)
	}
	k.cfg.TLSCertificate.Data = []byte("junk")
	k.read = k.read.Add(-certificateAge)
	if got := name(); got != "two.example" {
		t.Errorf("a broken file took the old certificate away: %s", got)
	}
	cfg.TLSCertificate.Data = []byte("junk")
	if _, err := newTLSKeeper(&cfg, nil); err == nil || !strings.Contains(err.Error(), "tls_certificate") {
		t.Errorf("at start: %v", err)
	}
}
