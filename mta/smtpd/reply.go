package smtpd

import (
	"errors"
	"strings"

	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
	"example.com/svc/spool"
)

// ok answers without naming the command.
func (s *session) ok(code int, text string) { s.reply(code, text, false) }

// bad answers a command that is refused.
func (s *session) bad(code int, text string) { s.reply(code, text, true) }

// reply asks policy, writes the reply into the buffer and records a rejection (flows SM-20). 421 ends the session (RFC
// 5321 section 3.8).
func (s *session) reply(code int, text string, name bool) {
	bus := s.srv.o.Bus
	if OnRewriteResponse.Handled(bus) {
		code, text = s.rewrite(code, text, name)
	}
	s.write(code, text)
	if code >= 400 && !(code == 421 && strings.HasPrefix(text, "4.3.2 ")) { // flows SM-5
		s.recordRejection(code, text, name)
	}
	if code == 421 {
		s.closing = true
	}
}

func (s *session) write(code int, text string) {
	if strings.IndexByte(text, '\n') < 0 {
		_ = s.w.WriteReply(code, text) // the error stays in the writer
		return
	}
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
	}
	_ = s.w.WriteReply(code, lines...) // the error stays in the writer
}

// rewrite lets policy change a reply within the bounds that [Rewritten] names.
func (s *session) rewrite(code int, text string, name bool) (int, string) {
	a := Outgoing{Status: code, Response: text, Session: &s.info}
	if name {
		a.Command = s.commandText()
	}
	r, handled, err := OnRewriteResponse.Call(s.ctx, s.srv.o.Bus, a)
	if err != nil {
		s.log.Error("rewriting a reply failed", "session", s.info.ID, "err", err)
		return code, text
	}
	if !handled {
		return code, text
	}
	if n := r.Status; n != 0 && n != code {
		if n < 200 || n > 599 || n != 421 && n/100 != code/100 && (n < 400 || code < 400) {
			s.log.Error("a reply cannot be rewritten so", "session", s.info.ID, "from", code, "to", n)
			return code, text
		}
		code = n
	}
	if r.Response != "" {
		text = r.Response
	}
	return code, text
}

// commandText returns the command that is answered, without credentials.
func (s *session) commandText() string {
	if s.content {
		return "DATA"
	}
	line := s.line
	if c, _ := smtp.ParseCommand(line); c.Verb == smtp.AUTH {
		mechanism, _, _ := strings.Cut(c.Arg, " ")
		return strings.TrimSpace("AUTH " + mechanism)
	}
	return strings.ToValidUTF8(string(line[:min(len(line), 1024)]), "?")
}

// recordRejection counts and records a refusal.
func (s *session) recordRejection(code int, text string, name bool) {
	s.srv.inst.rejectedAll.Inc()
	s.srv.inst.rejections.With(s.listener).Inc()
	if s.srv.o.Recorder == nil {
		return
	}
	r := &mta.Record{
		Type:      mta.RejectionRecord,
		Sender:    s.tx.sender.String(),
		Response:  mta.ParseResponse(code, text),
		Peer:      s.peer,
		SessionID: s.info.ID,
	}
	if name {
		r.Response.Command = s.commandText()
	}
	if !s.tx.last.IsNull() {
		r.Recipients = []string{s.tx.last.String()}
	}
	if err := s.srv.o.Recorder.Record(s.ctx, nil, r); err != nil {
		s.log.Error("recording a rejection failed", "session", s.info.ID, "err", err)
	}
}

// refuse answers the error of an event (flows SM-18, SM-19).
func (s *session) refuse(err error) {
	var rej *mta.Rejection
	if !errors.As(err, &rej) || rej.Code < 400 || rej.Code > 599 {
		s.broken(err)
		return
	}
	s.bad(rej.Code, rej.Text)
	switch rej.Mode {
	case mta.FollowWith421:
		if !s.closing {
			_ = s.w.WriteReply(421, s.info.Hostname+" disconnecting due to previous error")
		}
		s.closing = true
	case mta.ForceDisconnect:
		s.closing = true
	}
}

// broken answers an error that is no rejection, and closes.
func (s *session) broken(err error) {
	s.log.Error("SMTP session failed", "session", s.info.ID, "peer", s.from, "err", err)
	if errors.Is(err, spool.ErrUnhealthy) {
		s.bad(421, "4.3.2 "+s.info.Hostname+" the spool is not accepting writes. Try later")
	} else {
		s.bad(421, "4.3.0 "+s.info.Hostname+" technical difficulties")
	}
	s.closing = true
}
