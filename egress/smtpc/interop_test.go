package smtpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"example.com/svc/egress"
	"example.com/svc/egress/route"
	"example.com/svc/mta"
	"example.com/svc/mta/dns/dnstest"
	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
	"example.com/svc/queue"
)

// sink is a go-smtp backend that keeps what it is given.
type sink struct {
	mu   sync.Mutex
	mail []string // "sender>rcpt,rcpt:body"
	tls  bool     // of the last session
}

type sinkSession struct {
	s    *sink
	from string
	to   []string
	c    *gosmtp.Conn
}

func (s *sink) NewSession(c *gosmtp.Conn) (gosmtp.Session, error) {
	return &sinkSession{s: s, c: c}, nil
}

func (s *sinkSession) Mail(from string, _ *gosmtp.MailOptions) error { s.from = from; return nil }
func (s *sinkSession) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	if strings.HasPrefix(to, "no") {
		return &gosmtp.SMTPError{Code: 550, EnhancedCode: gosmtp.EnhancedCode{5, 1, 1}, Message: "no such user"}
	}
	s.to = append(s.to, to)
	return nil
}
func (s *sinkSession) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	_, isTLS := s.c.TLSConnectionState()
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	s.s.tls = isTLS
	s.s.mail = append(s.s.mail, s.from+">"+strings.Join(s.to, ",")+":"+string(b))
	return nil
}
func (s *sinkSession) Reset()        { s.from, s.to = "", nil }
func (s *sinkSession) Logout() error { return nil }

// serve runs a go-smtp server on the loopback address.
func serve(t testing.TB, cert *tls.Certificate) (*sink, netip.AddrPort) {
	t.Helper()
	s := new(sink)
	srv := gosmtp.NewServer(s)
	srv.Domain, srv.EnableSMTPUTF8 = "sink.test", true
	srv.ErrorLog = discard{}
	if cert != nil {
		srv.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*cert}}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { srv.Close(); <-done })
	return s, l.Addr().(*net.TCPAddr).AddrPort()
}

type discard struct{}

func (discard) Printf(string, ...any) {}
func (discard) Println(...any)        {}

func selfSigned(t testing.TB, name string) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestEndToEnd takes tickets through a Manager to an independent server.
func TestEndToEnd(t *testing.T) {
	s, at := serve(t, nil)
	bus := new(event.Local)
	if err := egress.GetPathConfig.On(bus, func(context.Context, egress.PathArgs) (*egress.PathConfig, error) {
		return testConfig(func(c *egress.PathConfig) { c.ProhibitedHosts = nil }), nil
	}); err != nil {
		t.Fatal(err)
	}
	planner, err := route.NewPlanner(route.Config{Resolver: dnstest.Zone(t, "$ORIGIN test.\n@ 60 SOA a. b. 1 2 3 4 5\n")})
	if err != nil {
		t.Fatal(err)
	}
	m, err := egress.New(egress.Options{Bus: bus, Planner: planner, Hostname: "client.test",
		Openers: map[string]egress.Opener{egress.SMTPClient: New(Options{})}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() { ran <- m.Run(ctx) }()
	cfg := settings.New(func(c *queue.Config) {
		c.Protocol.SMTP = &queue.SMTP{MXList: []queue.MXHost{{Addr: at.Addr(), Port: at.Port()}}}
	})
	type end struct {
		rec *mta.Record
		rs  []mta.Result
	}
	ends := make(chan end, 100)
	store, slot := testStore(), new(queue.Slot)
	const n = 50
	for range n {
		rs := addrs("a@dest.test", "no@dest.test", "b@dest.test")
		msg := store.New(mta.Envelope{Sender: addr("s@me.test"), Recipients: rs}, []byte("Subject: x\r\n\r\n.dot\r\nbare\nlf\r\n"))
		tk := queue.NewTicket(msg, mta.QueueName{Domain: "dest.test"}, &cfg,
			func(_ context.Context, rec *mta.Record, rs []mta.Result) error { ends <- end{rec, rs}; return nil },
			func(_ context.Context, r queue.Return) error { t.Errorf("returned: %+v", r); ends <- end{}; return nil })
		tk.Selector = slot
		if err := m.Take(ctx, tk); err != nil {
			t.Fatal(err)
		}
	}
	for range n {
		e := <-ends
		if len(e.rs) != 2 || e.rs[0].Disposition != mta.Failed || e.rs[0].Response.Enhanced.String() != "5.1.1" ||
			e.rs[1].Disposition != mta.Delivered || len(e.rs[1].Recipients) != 2 {
			t.Fatalf("SC-28: %+v", e.rs)
		}
		if e.rec.Peer.Addr != at.Addr() || !e.rec.SourceAddress.Address.IsValid() || e.rec.DeliveryProtocol != "ESMTP" {
			t.Fatalf("%+v", e.rec)
		}
	}
	stop()
	if err := <-ran; err != nil {
		t.Fatal(err)
	}
	for _, got := range s.mail {
		if want := "s@me.test>a@dest.test,b@dest.test:Subject: x\r\n\r\n.dot\r\nbare\r\nlf\r\n"; got != want {
			t.Fatalf("C4: got %q, want %q", got, want)
		}
	}
	if len(s.mail) != n {
		t.Errorf("%d of %d messages arrived", len(s.mail), n)
	}
}

func TestTLSModes(t *testing.T) {
	cert, roots := selfSigned(t, "mx.example")
	other, _ := selfSigned(t, "other.example")
	tests := []struct {
		name   string
		mode   egress.TLSMode
		cert   *tls.Certificate
		ok     bool
		secure bool
	}{
		{"TL-1 opportunistic, verified", egress.TLSOpportunistic, cert, true, true},
		{"TL-1 opportunistic, wrong certificate", egress.TLSOpportunistic, other, false, false},
		{"TL-1 opportunistic, not offered", egress.TLSOpportunistic, nil, true, false},
		{"TL-1 insecure", egress.TLSOpportunisticInsecure, other, true, true},
		{"TL-1 required, verified", egress.TLSRequired, cert, true, true},
		{"TL-1 required, wrong certificate", egress.TLSRequired, other, false, false},
		{"TL-2 required, not offered", egress.TLSRequired, nil, false, false},
		{"TL-1 required insecure", egress.TLSRequiredInsecure, other, true, true},
		{"TL-1 disabled", egress.TLSDisabled, cert, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, at := serve(t, tt.cert)
			p := testPath()
			p.Target.Addr, p.Port = at.Addr(), at.Port()
			k, err := New(Options{Roots: roots}).Open(t.Context(), p, testConfig(func(c *egress.PathConfig) { c.EnableTLS = tt.mode }))
			var te *egress.TLSError
			if !tt.ok {
				if !errors.As(err, &te) {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := text(outcome(t, k, testBody)); got != "250/4 ab" {
				t.Fatal(got)
			}
			if err := k.Check(t.Context()); err != nil {
				t.Errorf("SC-13: %v", err)
			}
			if got := text(outcome(t, k, "caf\xc3\xa9\r\n")); got != "250/4 ab" {
				t.Fatal(got)
			}
			if info := k.Info().TLS; (info != nil) != tt.secure || info != nil && !strings.HasPrefix(info.Version, "TLSv1") {
				t.Errorf("TLS %+v", info)
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
			if s.tls != tt.secure || len(s.mail) != 2 {
				t.Errorf("TLS %v, %d messages", s.tls, len(s.mail))
			}
		})
	}
}

func TestRsetPolicy(t *testing.T) {
	for _, tt := range []struct {
		name string
		rset bool
		want string
	}{{"SC-16 enabled", true, "MAIL RSET MAIL RSET MAIL"}, {"SC-16 disabled", false, "MAIL MAIL RSET MAIL"}} {
		t.Run(tt.name, func(t *testing.T) {
			var verbs []string
			codes := []string{"250", "550", "250"} // of MAIL
			k, err := open(t, testConfig(func(c *egress.PathConfig) { c.EnableRset = tt.rset }), func(p *peer) {
				p.ready()
				for {
					line := p.hear()
					verb, _, _ := strings.Cut(line, " ")
					switch verb {
					case eof, "QUIT":
						return
					case "RSET":
						verbs = append(verbs, verb)
						p.say("250 ok\r\n")
					case "MAIL":
						verbs = append(verbs, verb)
						p.say(codes[0] + " x\r\n")
						codes = codes[1:]
					case "RCPT":
						p.say("250 ok\r\n")
					case "DATA":
						p.say("354 go\r\n")
						p.hearTo(".")
						p.say("250 ok\r\n")
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"250/4 ab", "550/1 ab", "250/4 ab"} {
				if got := text(outcome(t, k, testBody)); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
			if got := strings.Join(verbs, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestEightBit(t *testing.T) {
	for _, tt := range []struct {
		name, rcpt, body, want, mail string
		ext                          []string
		ignore                       bool
	}{
		{"SC-15 8BITMIME", "a@x.test", "\xe9\r\n", "250/4 a", "MAIL FROM:<> BODY=8BITMIME", []string{"8BITMIME"}, false},
		{"SC-15 none", "a@x.test", "\xe9\r\n", "554/0 a", "", nil, false},
		{"SC-15 ignored", "a@x.test", "\xe9\r\n", "250/4 a", "MAIL FROM:<>", nil, true},
		{"SC-15 SMTPUTF8", "é@x.test", "x\r\n", "250/4 é", "MAIL FROM:<> SMTPUTF8", []string{"SMTPUTF8"}, false},
		{"SC-15 no SMTPUTF8", "é@x.test", "x\r\n", "554/0 é", "", nil, false},
		{"SIZE", "a@x.test", "x\r\n", "250/4 a", "MAIL FROM:<> SIZE=3", []string{"SIZE 99"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mail := make(chan string, 1)
			k, err := open(t, testConfig(func(c *egress.PathConfig) { c.Ignore8Bit = tt.ignore }), func(p *peer) {
				p.ready(append(tt.ext, pipe)...)
				line := p.hear()
				mail <- line
				if line == "QUIT" || line == eof {
					return
				}
				p.accept(1)
				p.hearTo(".")
				p.say("250 ok\r\n")
				p.hear()
			})
			if err != nil {
				t.Fatal(err)
			}
			rs := []mta.Address{addr(tt.rcpt)}
			m := testStore().New(mta.Envelope{Recipients: rs}, []byte(tt.body))
			var out egress.Outcome
			if err := k.Deliver(t.Context(), m, rs, &out); err != nil {
				t.Fatal(err)
			}
			if got := text(&out); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			_ = k.Close()
			if got := <-mail; tt.mail != "" && got != tt.mail {
				t.Errorf("got %q, want %q", got, tt.mail)
			}
		})
	}
}
