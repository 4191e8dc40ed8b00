package smtpd

import (
	"strconv"
	"strings"

	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

// greet runs what comes before the first command and reports whether the session goes on.
func (s *session) greet() bool {
	if !s.admitted() {
		return false
	}
	if OnConnectionAccepted.Handled(s.srv.o.Bus) {
		if _, _, err := OnConnectionAccepted.Call(s.ctx, s.srv.o.Bus, &s.info); err != nil {
			s.refuse(err) // flows SM-14: the session ends whatever the code
			return false
		}
	}
	s.ok(220, s.info.Hostname+" "+s.srv.cfg.Banner)
	return !s.closing
}

// admitted asks whether new mail is accepted (flows SM-4), and refuses otherwise.
func (s *session) admitted() bool {
	refusal := s.srv.o.Gate.Check()
	if refusal == nil {
		return true
	}
	if refusal.Denied {
		s.srv.inst.denied.Inc()
	}
	s.shed(refusal)
	return false
}

// shed refuses for now and ends the session.
func (s *session) shed(refusal *mta.Refusal) { s.bad(421, "4.3.2 "+s.info.Hostname+" "+refusal.Reason) }

// hello answers EHLO and HELO. It ends a transaction (RFC 5321 section 4.1.4, choices 7).
func (s *session) hello(c smtp.Command) {
	s.endTransaction()
	var offers []string
	if c.Verb == smtp.EHLO {
		offers = s.extensions()
	}
	if OnEHLO.Handled(s.srv.o.Bus) {
		list, handled, err := OnEHLO.Call(s.ctx, s.srv.o.Bus, EHLO{Domain: c.Arg, Session: &s.info, Extensions: offers})
		if err != nil {
			s.refuse(err)
			return
		}
		if handled && list != nil && c.Verb == smtp.EHLO {
			offers = list
		}
	}
	var b strings.Builder
	b.WriteString(s.info.Hostname)
	b.WriteString(" Hello ")
	b.WriteString(c.Arg)
	for _, x := range offers {
		b.WriteByte('\n')
		b.WriteString(x)
	}
	s.ok(250, b.String())
	s.info.Hello = c.Arg
	s.info.Meta.Set(mta.MetaEHLODomain, c.Arg)
	s.peer = &mta.Peer{Name: c.Arg, Addr: s.peer.Addr}
}

// extensions lists what EHLO offers (flows SM-21, choices 6).
func (s *session) extensions() []string {
	last := "STARTTLS"
	if s.info.TLS != nil {
		last = "AUTH PLAIN"
	}
	size := strconv.FormatUint(uint64(s.srv.cfg.MaxMessageSize), 10)
	return []string{"PIPELINING", "ENHANCEDSTATUSCODES", "8BITMIME", "SMTPUTF8", "SIZE " + size, last}
}
