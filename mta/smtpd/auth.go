package smtpd

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"

	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

const (
	maxAuthLine   = 16384 // flows SM-25
	maxAuthFailed = 10    // failures before the connection is closed
)

// auth answers AUTH (RFC 4954, flows SM-25).
func (s *session) auth(c smtp.Command) {
	mechanism, initial, _ := strings.Cut(c.Arg, " ")
	initial = strings.TrimSpace(initial)
	switch {
	case s.info.Auth.Authenticated():
		s.bad(503, "5.5.1 already authenticated")
	case s.tx.open:
		s.bad(503, "5.5.1 not within a transaction")
	case !strings.EqualFold(mechanism, "PLAIN"):
		s.bad(504, "5.5.4 mechanism not supported")
	case s.info.TLS == nil:
		s.bad(524, "5.7.11 TLS is required for this mechanism")
	case initial == "":
		s.challenge()
	default:
		s.credentials(initial)
	}
}

// challenge asks for the credentials on a line of their own.
func (s *session) challenge() {
	s.line = []byte("AUTH PLAIN")
	s.ok(334, "")
	if s.closing {
		return
	}
	line, err := s.readLine(maxAuthLine)
	switch {
	case errors.Is(err, smtp.ErrLineTooLong):
		s.bad(501, "5.5.2 response too long")
	case err != nil:
		s.readFailed(err)
		s.closing = true
	case string(line) == "*":
		s.bad(501, "5.5.0 cancelled")
	default:
		s.credentials(string(line))
	}
}

// credentials decodes a response of mechanism PLAIN (RFC 4616 section 2) and asks policy.
func (s *session) credentials(response string) {
	s.line = []byte("AUTH PLAIN")
	if response == "=" { // RFC 4954 section 4: an empty response
		response = ""
	}
	raw, err := base64.StdEncoding.DecodeString(response)
	fields := strings.Split(string(raw), "\x00")
	if err != nil || len(fields) != 3 || !utf8.Valid(raw) {
		s.bad(501, "5.5.2 malformed response")
		return
	}
	authz, authc := fields[0], fields[1]
	if authz == "" {
		authz = authc
	}
	answer, _, err := OnAuthPlain.Call(s.ctx, s.srv.o.Bus,
		AuthPlain{Authz: authz, Authc: authc, Password: fields[2], Session: &s.info})
	switch {
	case err != nil:
		s.refuse(err)
	case answer.Info != nil && !answer.Info.Authenticated():
		s.broken(errors.New("smtp_server_auth_plain answered without an identity"))
	case answer.Info != nil:
		s.authenticated(answer.Info)
	case answer.OK:
		s.authenticated(&mta.Auth{Identities: []mta.Identity{
			{Identity: authz, Context: mta.ContextAuthz}, {Identity: authc, Context: mta.ContextAuthn}}})
	default:
		s.authFailed++
		s.bad(535, "5.7.8 AUTH invalid")
		if s.authFailed >= maxAuthFailed && !s.closing {
			s.bad(421, "4.7.0 "+s.info.Hostname+" too many failures")
		}
	}
}

// authenticated takes identities over into the session.
func (s *session) authenticated(info *mta.Auth) {
	authn, authz := "", ""
	for _, id := range info.Identities {
		switch {
		case id.Context == mta.ContextAuthn && authn == "":
			authn = id.Identity
		case id.Context == mta.ContextAuthz && authz == "":
			authz = id.Identity
		}
	}
	if authn == "" {
		authn = info.Identities[0].Identity
	}
	if authz == "" {
		authz = authn
	}
	a := &s.info.Auth
	a.Identities = append(a.Identities, info.Identities...)
	a.Groups = append(a.Groups, info.Groups...)
	s.info.Meta.Set(mta.MetaAuthzID, authz)
	s.info.Meta.Set(mta.MetaAuthnID, authn)
	s.ok(235, "2.7.0 AUTH OK!")
}
