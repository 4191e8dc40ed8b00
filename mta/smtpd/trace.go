package smtpd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"time"

	"example.com/svc/mta"
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

// traceMark tells the supplemental header from other base64 (flows SM-48).
const traceMark = `\_/`

// foldAt is how many columns of base64 stand on one line.
const foldAt = 74

// appendSupplemental appends the header that finds the recipient again in reports (flows SM-48). Metadata that is not set is
// left out (SM-49).
func appendSupplemental(ctx context.Context, b []byte, t *TraceHeaders, m *mta.Message) ([]byte, error) {
	var plain, coded [512]byte
	payload, err := appendPayload(ctx, plain[:0], t, m)
	if err != nil {
		return nil, err
	}
	enc := base64.StdEncoding.AppendEncode(coded[:0], payload)
	b = append(append(b, t.HeaderName...), ": "...)
	for first := max(1, foldAt-len(b)); len(enc) > 0; first = foldAt {
		n := min(first, len(enc))
		b = append(b, enc[:n]...)
		b = append(b, '\r', '\n')
		if enc = enc[n:]; len(enc) > 0 {
			b = append(b, '\t')
		}
	}
	return b, nil
}

func appendPayload(ctx context.Context, b []byte, t *TraceHeaders, m *mta.Message) ([]byte, error) {
	rs := m.Envelope().Recipients
	if len(rs) == 1 && len(t.IncludeMetaNames) == 0 {
		if a := rs[0].String(); plainJSON(a) {
			return append(append(append(b, `{"_@_":"\\_/","recipient":"`...), a...), `"}`...), nil
		}
	}
	p := make(map[string]any, 2+len(t.IncludeMetaNames))
	if len(t.IncludeMetaNames) > 0 {
		meta, err := m.Meta(ctx)
		if err != nil {
			return nil, err
		}
		for _, name := range t.IncludeMetaNames {
			if v, ok := meta.Get(name); ok {
				p[name] = v
			}
		}
	}
	p["_@_"] = traceMark
	list := make([]string, len(rs))
	for i, a := range rs {
		list[i] = a.String()
	}
	p["recipient"] = list
	if len(list) == 1 {
		p["recipient"] = list[0]
	}
	return json.Marshal(p)
}

// plainJSON reports whether s stands in JSON as it is.
func plainJSON(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
