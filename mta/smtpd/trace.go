package smtpd

import (
	"context"
	"net/netip"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/mail"
	"example.com/svc/mta/smtp"
)

// appendReceived appends the trace header of a batch (RFC 5321 section 4.4, flows SM-38).
func (s *session) appendReceived(b []byte, m *mta.Message) []byte {
	hello := s.info.Hello
	if hello == "" {
		hello = "unspecified"
	}
	b = append(append(b, "Received: from "...), hello...)
	b = appendAddr(append(b, " ("...), s.info.Peer.Addr())
	b = append(append(b, ")\r\n\tby "...), s.info.Hostname...)
	b = append(append(append(b, " ("...), s.srv.o.Product...), ' ')
	b = appendAddr(b, s.info.Local.Addr())
	b = append(b, ")\r\n\twith ESMTP"...)
	if t := s.info.TLS; t != nil {
		b = append(b, 'S') // RFC 3848
		if s.info.Auth.Authenticated() {
			b = append(b, 'A')
		}
		b = append(append(b, " ("...), t.Version...)
		b = append(append(append(b, ':'), t.Cipher...), ')')
	}
	b = append(b, "\r\n\tid "...)
	b, _ = m.ID().AppendText(b) // never fails
	if rs := m.Envelope().Recipients; len(rs) > 0 && lineSafe(rs[0]) {
		b = smtp.AppendPath(append(b, "\r\n\tfor "...), rs[0])
	}
	b = m.Created().AppendFormat(append(b, ";\r\n\t"...), time.RFC1123Z) // RFC 5322 section 3.3
	return append(b, "\r\n"...)
}

// lineSafe reports whether an address, which policy may have made, stays on its line.
func lineSafe(a mta.Address) bool { return safeText(a.Local) && safeText(a.Domain) }

func appendAddr(b []byte, a netip.Addr) []byte {
	if !a.IsValid() {
		return append(b, "unknown"...)
	}
	return a.AppendTo(b)
}

// appendSupplemental appends the header that finds the recipient again in reports (flows SM-48).
func appendSupplemental(ctx context.Context, b []byte, t *mail.TraceHeaders, m *mta.Message) ([]byte, error) {
	meta, err := m.Meta(ctx)
	if err != nil {
		return nil, err
	}
	rs := m.Envelope().Recipients
	list := make([]string, len(rs))
	for i, a := range rs {
		list[i] = a.String()
	}
	return mail.AppendSupplemental(b, t.HeaderName, list, t.IncludeMetaNames, meta.Get)
}
