package dnstest

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/svc/mta/dns"
	wire "github.com/miekg/dns"
)

// Behaviour is a way to answer.
type Behaviour uint8

// The behaviours.
const (
	Well          Behaviour = iota // as the zones say
	WrongID                        // with another id
	WrongQuestion                  // repeating another question
	Truncated                      // cut over UDP, in full over TCP
	TruncatedBoth                  // cut over both
	Silent                         // not at all
	Garbage                        // with octets that are no message, under the right id
	Huge                           // over TCP with 64 KB, cut over UDP
	CNAMELoop                      // with aliases in a circle
	NoEDNS                         // FORMERR to every question with EDNS0
	WrongThenWell                  // first forged answers, then the right one
	Refuse                         // REFUSED
	Fail                           // SERVFAIL
	BogusEDE                       // SERVFAIL, telling that validation failed (RFC 8914)
	Referral                       // a referral in place of an answer
	Strangers                      // the answer, with records of other names added
	OtherPort                      // first a forged answer from another socket, then the right one
)

// Server is a name server on the loopback address.
type Server struct {
	// Addr is where it listens, over UDP and TCP.
	Addr netip.AddrPort

	r        dns.Resolver
	udp, tcp *wire.Server

	mu      sync.Mutex // protects the fields below
	names   map[string]Behaviour
	queries map[string]int
	hook    func(name string, qtype dns.Type)
}

// Zone returns a resolver over one zone text; an error ends the test.
func Zone(t testing.TB, text ...string) *dns.Zones {
	t.Helper()
	zones := make([]dns.Zone, len(text))
	for i, s := range text {
		zones[i].Text = s
	}
	z, err := dns.NewZones(zones, nil)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// Serve starts a server that answers from r, and stops it when the test ends.
func Serve(t testing.TB, r dns.Resolver) *Server {
	t.Helper()
	s := &Server{r: r, names: make(map[string]Behaviour), queries: make(map[string]int)}
	l, pc, err := listen()
	if err != nil {
		t.Fatalf("dnstest: listen: %v", err)
	}
	s.Addr = l.Addr().(*net.TCPAddr).AddrPort()
	h := wire.HandlerFunc(s.serve)
	s.udp = &wire.Server{PacketConn: pc, Handler: h}
	s.tcp = &wire.Server{Listener: l, Handler: h}
	var wg sync.WaitGroup
	for _, srv := range []*wire.Server{s.udp, s.tcp} {
		ready := make(chan struct{})
		srv.NotifyStartedFunc = func() { close(ready) }
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := srv.ActivateAndServe(); err != nil {
				t.Errorf("dnstest: serve: %v", err)
			}
		}()
		<-ready
	}
	t.Cleanup(func() {
		_ = s.udp.Shutdown()
		_ = s.tcp.Shutdown()
		wg.Wait()
	})
	return s
}

// listen finds a port that is free for both transports.
func listen() (net.Listener, net.PacketConn, error) {
	var errs error
	for range 20 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		pc, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			return l, pc, nil
		}
		l.Close()
		errs = errors.Join(errs, err)
	}
	return nil, nil, errs
}

// Behave makes the server answer questions about name in the way of b; "" is
// every name that has no behaviour of its own.
func (s *Server) Behave(name string, b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[strings.ToLower(name)] = b
}

// OnQuery sets a function called with each question before it is answered.
func (s *Server) OnQuery(f func(name string, qtype dns.Type)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = f
}

// Queries returns how many questions about name arrived.
func (s *Server) Queries(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queries[strings.ToLower(name)]
}

// note counts a question and returns what to do with it.
func (s *Server) note(name string, qtype dns.Type) Behaviour {
	s.mu.Lock()
	s.queries[name]++
	b, ok := s.names[name]
	if !ok {
		b = s.names[""]
	}
	hook := s.hook
	s.mu.Unlock()
	if hook != nil {
		hook(name, qtype)
	}
	return b
}

func (s *Server) serve(w wire.ResponseWriter, q *wire.Msg) {
	if len(q.Question) != 1 {
		return
	}
	_, udp := w.RemoteAddr().(*net.UDPAddr)
	name := strings.ToLower(strings.TrimSuffix(q.Question[0].Name, "."))
	b := s.note(name, dns.Type(q.Question[0].Qtype))
	m := new(wire.Msg)
	m.SetReply(q)
	m.RecursionAvailable = true
	if !s.spoil(w, q, m, b, udp) {
		return
	}
	s.fill(m, q.Question[0])
	if b == Strangers {
		m.Answer = append([]wire.RR{rr("other.example. 60 IN A 192.0.2.66"), rr("other.example. 60 IN CNAME " + name + ".")}, m.Answer...)
		m.Extra = append(m.Extra, rr(name+". 60 IN A 192.0.2.66"))
	}
	if udp {
		size := wire.MinMsgSize
		if o := q.IsEdns0(); o != nil {
			size = int(o.UDPSize())
		}
		m.Truncate(size)
	}
	_ = w.WriteMsg(m)
}

// spoil does what b says; it returns true if the right answer is to follow.
func (s *Server) spoil(w wire.ResponseWriter, q, m *wire.Msg, b Behaviour, udp bool) bool {
	name := q.Question[0].Name
	switch b {
	case WrongID:
		m.Id ^= 0x5555
	case WrongQuestion:
		m.Question[0].Name = "elsewhere.example."
	case WrongThenWell:
		for i := range 5 {
			forged := m.Copy()
			forged.Id += uint16(i) + 1
			forged.Answer = []wire.RR{rr(name + " 60 IN A 192.0.2.66")}
			_ = w.WriteMsg(forged)
		}
		return true
	case OtherPort:
		return s.forge(w.RemoteAddr(), m.Copy(), name)
	case Truncated, TruncatedBoth:
		if !udp && b == Truncated {
			return true
		}
		m.Truncated = true
		m.Answer = []wire.RR{rr(name + " 60 IN A 192.0.2.66")}
	case Silent:
		return false
	case Garbage:
		raw := []byte("\x00\x00\x81\x80garbage that is no message at all")
		binary.BigEndian.PutUint16(raw, q.Id)
		_, _ = w.Write(raw)
		return false
	case Huge:
		s.huge(m, name, udp)
	case CNAMELoop:
		m.Answer = []wire.RR{rr(name + " 60 IN CNAME a.loop."), rr("a.loop. 60 IN CNAME b.loop."), rr("b.loop. 60 IN CNAME a.loop.")}
	case NoEDNS:
		if q.IsEdns0() == nil {
			return true
		}
		m.Rcode, m.Question = wire.RcodeFormatError, nil
	case Refuse:
		m.Rcode = wire.RcodeRefused
	case Fail, BogusEDE:
		m.Rcode = wire.RcodeServerFailure
		if b == BogusEDE {
			m.SetEdns0(1232, false)
			m.IsEdns0().Option = []wire.EDNS0{&wire.EDNS0_EDE{InfoCode: wire.ExtendedErrorCodeDNSBogus}}
		}
	case Referral:
		m.Ns = []wire.RR{rr("example. 60 IN NS ns.example.")}
	default:
		return true
	}
	_ = w.WriteMsg(m)
	return false
}

// forge sends a right-looking answer from a socket that was not asked.
func (s *Server) forge(to net.Addr, m *wire.Msg, name string) bool {
	m.Answer = []wire.RR{rr(name + " 60 IN A 192.0.2.66")}
	b, err := m.Pack()
	if err != nil {
		return false
	}
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return false
	}
	defer pc.Close()
	_, err = pc.WriteTo(b, to)
	return err == nil
}

// huge fills a message to the limit of TCP.
func (s *Server) huge(m *wire.Msg, name string, udp bool) {
	if udp {
		m.Truncated = true
		return
	}
	m.Compress = true
	for i := range 4000 {
		m.Answer = append(m.Answer, &wire.A{
			Hdr: wire.RR_Header{Name: name, Rrtype: wire.TypeA, Class: wire.ClassINET, Ttl: 60},
			A:   net.IPv4(198, 18, byte(i>>8), byte(i)),
		})
	}
}

// fill writes the answer of the resolver into m.
func (s *Server) fill(m *wire.Msg, q wire.Question) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ans, err := s.r.Lookup(ctx, q.Name, dns.Type(q.Qtype))
	if err != nil {
		var e *dns.Error
		errors.As(err, &e)
		s.negative(m, e)
		return
	}
	m.AuthenticatedData = ans.Secure
	ttl := uint32(ans.TTL / time.Second)
	chain := append(append([]string{}, ans.Aliases...), ans.Name)
	for i, alias := range ans.Aliases {
		m.Answer = append(m.Answer, &wire.CNAME{Hdr: header(alias, wire.TypeCNAME, ttl), Target: wire.Fqdn(chain[i+1])})
	}
	for _, rec := range ans.Records {
		m.Answer = append(m.Answer, toWire(rec, header(ans.Name, q.Qtype, ttl)))
	}
}

func (s *Server) negative(m *wire.Msg, e *dns.Error) {
	switch {
	case e == nil || !e.NotFound():
		m.Rcode = wire.RcodeServerFailure
		return
	case e.Kind == dns.NXDomain:
		m.Rcode = wire.RcodeNameError
	}
	m.AuthenticatedData = e.Secure
	ttl := uint32(e.TTL / time.Second)
	m.Ns = []wire.RR{&wire.SOA{Hdr: header(".", wire.TypeSOA, ttl), Ns: "ns.", Mbox: "root.", Minttl: ttl}}
}

func header(name string, t uint16, ttl uint32) wire.RR_Header {
	return wire.RR_Header{Name: wire.Fqdn(name), Rrtype: t, Class: wire.ClassINET, Ttl: ttl}
}

func toWire(rec dns.Record, h wire.RR_Header) wire.RR {
	switch dns.Type(h.Rrtype) {
	case dns.TypeA:
		return &wire.A{Hdr: h, A: rec.Addr.AsSlice()}
	case dns.TypeAAAA:
		b := rec.Addr.As16()
		return &wire.AAAA{Hdr: h, AAAA: b[:]}
	case dns.TypeMX:
		return &wire.MX{Hdr: h, Preference: rec.MX.Pref, Mx: wire.Fqdn(rec.MX.Host)}
	case dns.TypePTR:
		return &wire.PTR{Hdr: h, Ptr: wire.Fqdn(rec.Host)}
	case dns.TypeCNAME:
		return &wire.CNAME{Hdr: h, Target: wire.Fqdn(rec.Host)}
	case dns.TypeTLSA:
		t := rec.TLSA
		return &wire.TLSA{Hdr: h, Usage: t.Usage, Selector: t.Selector, MatchingType: t.Matching, Certificate: hex.EncodeToString(t.Data)}
	}
	txt := make([]string, len(rec.TXT))
	for i, s := range rec.TXT {
		txt[i] = strings.ReplaceAll(s, `\`, `\\`)
	}
	return &wire.TXT{Hdr: h, Txt: txt}
}

// rr reads one record. The text is written in this package, so it cannot fail.
func rr(s string) wire.RR {
	out, _ := wire.NewRR(s)
	return out
}
