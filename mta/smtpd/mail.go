package smtpd

import (
	"strconv"
	"strings"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

// mail answers MAIL (flows SM-27).
func (s *session) mail(c smtp.Command) {
	if s.tx.open {
		s.bad(503, "5.5.0 a transaction is open already")
		return
	}
	if refusal := s.srv.o.Gate.Check(); refusal != nil { // a long session must not outlive the admission
		s.shed(refusal)
		return
	}
	tx := transaction{open: true, sender: c.Path, began: time.Now()}
	if !s.mailParams(c.Params, &tx) {
		return
	}
	if !tx.utf8 && !c.Path.IsASCII() {
		s.bad(553, "5.6.7 non-ASCII address without SMTPUTF8") // RFC 6531 section 3.5
		return
	}
	if OnMailFrom.Handled(s.srv.o.Bus) {
		if _, _, err := OnMailFrom.Call(s.ctx, s.srv.o.Bus, MailFrom{Sender: c.Path, Session: &s.info}); err != nil {
			s.refuse(err)
			return
		}
	}
	s.tx = tx
	s.ok(250, acceptedText("2.1.0 OK ", c.Path))
}

func acceptedText(head string, a mta.Address) string {
	var room [128]byte
	return string(smtp.AppendPath(append(room[:0], head...), a))
}

// mailParams reads the parameters of MAIL and reports whether they are acceptable.
func (s *session) mailParams(ps []smtp.Param, tx *transaction) bool {
	for _, p := range ps {
		switch p.Name {
		case "SIZE": // RFC 1870 section 6.1
			n, err := strconv.ParseUint(p.Value, 10, 64)
			if err != nil && (p.Value == "" || strings.Trim(p.Value, "0123456789") != "" || len(p.Value) > 20) {
				s.bad(501, "5.5.4 bad SIZE")
				return false
			}
			if err != nil || n > uint64(s.srv.cfg.MaxMessageSize) {
				s.bad(552, "5.3.4 message too big, the limit is "+strconv.FormatUint(uint64(s.srv.cfg.MaxMessageSize), 10)+" bytes")
				return false
			}
		case "BODY": // RFC 6152 section 2
			if !strings.EqualFold(p.Value, "7BIT") && !strings.EqualFold(p.Value, "8BITMIME") {
				s.bad(501, "5.5.4 bad BODY")
				return false
			}
		case "SMTPUTF8": // RFC 6531 section 3.4
			if p.HasValue {
				s.bad(501, "5.5.4 SMTPUTF8 takes no value")
				return false
			}
			tx.utf8 = true
		case "AUTH": // RFC 4954 section 5: taken and not trusted
			if !p.HasValue {
				s.bad(501, "5.5.4 bad AUTH")
				return false
			}
		default:
			s.bad(555, "5.5.4 unknown parameter")
			return false
		}
	}
	return true
}

// rcpt answers RCPT (flows SM-28).
func (s *session) rcpt(c smtp.Command) {
	switch {
	case !s.tx.open:
		s.bad(503, "5.5.0 MAIL first")
		return
	case len(c.Params) > 0:
		s.bad(555, "5.5.4 unknown parameter")
		return
	case c.Path.IsNull():
		s.bad(501, "5.1.3 bad recipient address syntax")
		return
	case !s.tx.utf8 && !c.Path.IsASCII():
		s.bad(553, "5.6.7 non-ASCII address without SMTPUTF8")
		return
	}
	relay, err := s.mayRelay(s.tx.sender, c.Path)
	if err != nil {
		s.broken(err)
		return
	}
	if !relay {
		s.bad(550, "5.7.1 relaying not permitted for "+s.from)
		return
	}
	if !s.recipientRoom() {
		return
	}
	s.recipients++
	if OnRcptTo.Handled(s.srv.o.Bus) {
		if _, _, err := OnRcptTo.Call(s.ctx, s.srv.o.Bus, RcptTo{Recipient: c.Path, Session: &s.info}); err != nil {
			s.refuse(err)
			return
		}
	}
	s.tx.rcpts, s.tx.last = append(s.tx.rcpts, c.Path), c.Path
	s.ok(250, acceptedText("2.1.5 OK ", c.Path))
}

// recipientRoom checks the limits on recipients (RFC 5321 section 4.5.3.1.10).
func (s *session) recipientRoom() bool {
	switch {
	case len(s.tx.rcpts) >= s.srv.cfg.MaxRecipientsPerMessage:
		s.bad(452, "4.5.3 too many recipients")
	case s.recipients < s.srv.cfg.MaxMessagesPerConnection:
		return true
	case len(s.tx.rcpts) == 0:
		s.bad(421, "4.5.3 "+s.info.Hostname+" too many messages on this connection")
	default:
		s.bad(452, "4.5.3 too many recipients on this connection")
	}
	return false
}
