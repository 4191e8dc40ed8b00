package egress

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/svc/mta"
)

// tooManyClass is the bounce class that means too many recipients.
const tooManyClass = "TooManyRecipients"

// tooMany reports whether a reply to RCPT says that a transaction has too many recipients (flows SC-23; RFC 5321
// section 4.5.3.1.10).
func (m *Manager) tooMany(r mta.Response) bool {
	switch {
	case r.Code < 400 || r.Code > 599:
		return false
	case r.Enhanced.Subject == 5 && r.Enhanced.Detail == 3: // RFC 3463 section 3.6
		return true
	case r.Enhanced.IsZero() && (r.Code == 452 || r.Code == 552):
		return true
	}
	return m.o.Classify != nil && m.o.Classify(r) == tooManyClass
}

// disposition says what an answer means (flows SC-23). A code that is no answer to a delivery never counts as one (E4).
func (m *Manager) disposition(r Reply) mta.Disposition {
	code := r.Response.Code
	switch {
	case code >= 200 && code < 300:
		return mta.Delivered
	case code >= 500 && code < 600 && code != 503:
		if r.Stage == StageRcpt && m.tooMany(r.Response) {
			return mta.Transient
		}
		return mta.Failed
	}
	return mta.Transient
}

// rewrite lets the policy change the code of an answer (flows SC-22).
func (d *dispatcher) rewrite(r *mta.Response) {
	m := d.q.m
	if !RewriteDeliveryStatus.Handled(m.o.Bus) {
		return
	}
	name := d.ticket.Name
	code, handled, err := RewriteDeliveryStatus.Call(d.ctx, m.o.Bus, RewriteArgs{
		Response: r.String(), Domain: name.Domain, Tenant: name.Tenant, Campaign: name.Campaign,
		RoutingDomain: name.Routing(),
	})
	switch {
	case err != nil:
		m.log.Error("delivery status not rewritten", "err", err)
	case !handled || code == 0 || code == r.Code:
	case code < 200 || code > 599:
		m.log.Error("delivery status not rewritten: not a reply code", "code", code)
	default:
		r.Content += fmt.Sprintf(" (svc: status was rewritten from %d -> %d)", r.Code, code)
		r.Code = code
	}
}

// maxText bounds foreign text in responses.
const maxText = 2048

// safeText makes foreign text fit for records: one line, printable, bounded.
func safeText(s string) string {
	if len(s) > maxText {
		s = s[:maxText] + "..."
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "?")
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
