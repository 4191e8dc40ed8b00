package smtpd

import (
	"errors"

	"example.com/svc/mta/smtp"
)

// command answers one command line.
func (s *session) command(line []byte) {
	c, err := smtp.ParseCommand(line)
	if err != nil {
		s.malformed(c.Verb, err)
		return
	}
	switch c.Verb {
	case smtp.EHLO, smtp.HELO:
		s.hello(c)
	case smtp.MAIL:
		s.mail(c)
	case smtp.RCPT:
		s.rcpt(c)
	case smtp.DATA:
		s.data()
	case smtp.RSET:
		s.endTransaction()
		s.ok(250, "2.0.0 OK")
	case smtp.NOOP:
		s.ok(250, "2.0.0 OK")
	case smtp.QUIT:
		s.ok(221, "2.0.0 "+s.info.Hostname+" closing connection")
		s.closing = true
	case smtp.VRFY:
		s.ok(252, "2.5.0 cannot verify, try to send") // RFC 5321 section 3.5.3
	case smtp.STARTTLS:
		s.startTLS()
	case smtp.AUTH:
		s.auth(c)
	case smtp.XCLIENT:
		s.bad(550, "5.7.0 XCLIENT is not allowed") // flows SM-26
	default:
		s.bad(502, "5.5.1 command not implemented") // flows SM-31
	}
}

// malformed answers a command line that cannot be read; the session goes on (choices 19).
func (s *session) malformed(v smtp.Verb, err error) {
	switch {
	case errors.Is(err, smtp.ErrCharacters):
		s.bad(501, "5.5.2 invalid characters in command")
	case errors.Is(err, smtp.ErrEmpty):
		s.bad(501, "5.5.2 no command")
	case errors.Is(err, smtp.ErrPath) && v == smtp.MAIL:
		s.bad(501, "5.1.7 bad sender address syntax")
	case errors.Is(err, smtp.ErrPath):
		s.bad(501, "5.1.3 bad recipient address syntax")
	case v == smtp.LHLO, v == smtp.EXPN, v == smtp.ETRN, v == smtp.BDAT:
		s.bad(502, "5.5.1 command not implemented")
	default:
		s.bad(501, "5.5.4 bad arguments")
	}
}
