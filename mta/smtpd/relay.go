package smtpd

import (
	"example.com/svc/mta"
)

// maxDomains bounds the answers of get_listener_domain that a session keeps (events.tsv).
const maxDomains = 17

// mayRelay decides whether mail from sender to rcpt is accepted from this peer (flows RL-1 to RL-4).
func (s *session) mayRelay(sender, rcpt mta.Address) (bool, error) {
	from, err := s.domain(sender.Domain)
	if err != nil {
		return false, err
	}
	to, err := s.domain(rcpt.Domain)
	if err != nil {
		return false, err
	}
	peer := s.info.Peer.Addr()
	known := peer.IsValid()
	return known && s.srv.cfg.RelayHosts.Contains(peer) ||
		known && from != nil && from.RelayFrom.Contains(peer) ||
		to != nil && to.RelayTo, nil
}

// domain returns what policy says about a domain, and keeps the answer for the session (flows RL-9).
func (s *session) domain(name string) (*ListenerDomain, error) {
	if d, ok := s.domains[name]; ok {
		return d, nil
	}
	if !GetListenerDomain.Handled(s.srv.o.Bus) {
		return nil, nil
	}
	d, _, err := GetListenerDomain.Call(s.ctx, s.srv.o.Bus,
		DomainQuestion{Domain: name, Listener: s.listener, Session: &s.info})
	if err != nil {
		return nil, err
	}
	if s.domains == nil {
		s.domains = make(map[string]*ListenerDomain)
	}
	if len(s.domains) >= maxDomains {
		clear(s.domains)
	}
	s.domains[name] = d
	return d, nil
}
