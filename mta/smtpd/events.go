package smtpd

import (
	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
)

// Questions of a session, in the order of a session. Unless said otherwise a [mta.Rejection] is the reply and any other
// error is answered 421 4.3.0 and closes (flows SM-18, SM-19).
var (
	// OnConnectionAccepted asks before the banner. Any rejection closes (flows SM-14). Default: go on.
	OnConnectionAccepted = event.Define[*mta.Session, event.None]("smtp_server_connection_accepted", event.Single)
	// OnEHLO asks at EHLO and HELO; an answer replaces the offered extensions. Default: the standard list.
	OnEHLO = event.Define[EHLO, []string]("smtp_server_ehlo", event.Single)
	// OnAuthPlain asks for credentials. Default: refused with 535.
	OnAuthPlain = event.Define[AuthPlain, AuthAnswer]("smtp_server_auth_plain", event.Single)
	// OnMailFrom asks about a sender. Default: accepted.
	OnMailFrom = event.Define[MailFrom, event.None]("smtp_server_mail_from", event.Single)
	// GetListenerDomain asks what is known about the domain of a sender or recipient; nil means nothing. The answer is
	// kept for the session. Every error, also a rejection, closes with 421. Default: nil.
	GetListenerDomain = event.Define[DomainQuestion, *ListenerDomain]("get_listener_domain", event.Single)
	// OnRcptTo asks about a recipient that may be relayed to. Default: accepted.
	OnRcptTo = event.Define[RcptTo, event.None]("smtp_server_rcpt_to", event.Single)
	// OnData asks about the message of the whole transaction, without trace headers. Default: go on.
	OnData = event.Define[Received, event.None]("smtp_server_data", event.Single)
	// OnSplitTransaction asks for the batches; an empty list means no message, nil means no answer. Default:
	// batch_handling.
	OnSplitTransaction = event.Define[Received, [][]mta.Address]("smtp_server_split_transaction", event.Single)
	// OnMessageReceived asks about each batch, which has its Received header by then. Default: accepted.
	OnMessageReceived = event.Define[Received, event.None]("smtp_server_message_received", event.Single)
	// OnRewriteResponse may change each reply before it is written. Errors are logged only. Default: unchanged.
	OnRewriteResponse = event.Define[Outgoing, Rewritten]("smtp_server_rewrite_response", event.Single)
)

// EHLO is the question of [OnEHLO]. Extensions is nil for HELO.
type EHLO struct {
	Domain     string       `arg:"domain"`
	Session    *mta.Session `arg:"conn_meta"`
	Extensions []string     `arg:"extensions,opt"`
}

// AuthPlain is the question of [OnAuthPlain] (RFC 4616).
type AuthPlain struct {
	Authz    string       `arg:"authz"`
	Authc    string       `arg:"authc"`
	Password string       `arg:"password"`
	Session  *mta.Session `arg:"conn_meta"`
}

// AuthAnswer is the answer of [OnAuthPlain]. The zero value refuses.
type AuthAnswer struct {
	// OK accepts the credentials as they are.
	OK bool
	// Info, when not nil, accepts and says who the peer is; it must have an identity.
	Info *mta.Auth
}

// UnmarshalSetting reads a bool or a table with identities and groups.
func (a *AuthAnswer) UnmarshalSetting(v any) error {
	if ok, is := v.(bool); is {
		*a = AuthAnswer{OK: ok}
		return nil
	}
	var t struct {
		Identities []authIdentity `set:"identities"`
		Groups     []string       `set:"groups"`
	}
	if err := settings.Decode("", v, &t); err != nil {
		return err
	}
	info := &mta.Auth{Groups: t.Groups}
	for _, id := range t.Identities {
		info.Identities = append(info.Identities, mta.Identity{Identity: id.Identity, Context: id.Context})
	}
	*a = AuthAnswer{OK: true, Info: info}
	return nil
}

type authIdentity struct {
	Identity string `set:"identity" required:"true"`
	Context  string `set:"context" required:"true"`
}

// MailFrom is the question of [OnMailFrom].
type MailFrom struct {
	Sender  mta.Address  `arg:"sender"`
	Session *mta.Session `arg:"conn_meta"`
}

// DomainQuestion is the question of [GetListenerDomain]. The domain of the null sender is "" (flows RL-8).
type DomainQuestion struct {
	Domain string `arg:"domain"`
	// Listener is the local address and port of the session.
	Listener string       `arg:"listener"`
	Session  *mta.Session `arg:"conn_meta"`
}

// RcptTo is the question of [OnRcptTo].
type RcptTo struct {
	Recipient mta.Address  `arg:"recipient"`
	Session   *mta.Session `arg:"conn_meta"`
}

// Received is the question of [OnData], [OnSplitTransaction] and [OnMessageReceived]. Handlers may change the message;
// they may not keep it.
type Received struct {
	Message *mta.Message `arg:"message"`
	Session *mta.Session `arg:"conn_meta"`
}

// Outgoing is the question of [OnRewriteResponse].
type Outgoing struct {
	Status int `arg:"status"`
	// Response is the text with the enhanced code; lines are joined by "\n".
	Response string `arg:"response"`
	// Command is the line that was refused, "DATA" for replies to content, "" otherwise. Credentials are cut.
	Command string       `arg:"command,opt"`
	Session *mta.Session `arg:"conn_meta"`
}

// Rewritten is the answer of [OnRewriteResponse]. Zero fields keep what there was. An error cannot become a success,
// nor a success an error other than 421: the reply has to say what happened to the message (Q1).
type Rewritten struct {
	Status   int    `arg:"status,opt"`
	Response string `arg:"response,opt"`
}
