package mta

import "net/netip"

// Session is what is known about one receiving session: the connection metadata of policies. It belongs to the
// goroutine of its session.
type Session struct {
	// ID is a random UUID.
	ID string
	// Peer and Local are the effective addresses of both ends.
	Peer, Local netip.AddrPort
	// Hello is the argument of EHLO or HELO.
	Hello string
	// Hostname is the name this end goes by.
	Hostname string
	// TLS is nil before STARTTLS.
	TLS *TLSInfo
	// Auth is who authenticated.
	Auth Auth
	// Meta is the connection metadata; it is copied into every message of the session.
	Meta Meta
}

// Identity is one authenticated name and how it was proven (logs.md section 8, rule 5).
type Identity struct {
	Identity string `json:"identity"`
	Context  string `json:"context"`
}

// Contexts of an [Identity].
const (
	ContextAuthz     = "SmtpAuthPlainAuthorization"
	ContextAuthn     = "SmtpAuthPlainAuthentication"
	ContextHTTPBasic = "HttpBasicAuth"
)

// TrustedHTTPGroup is the group of HTTP peers inside trusted_hosts.
const TrustedHTTPGroup = "svc:http-listener-trusted-ip"

// Auth says who a peer is (svc.aaa:AuthInfo). The zero value is an unauthenticated peer.
type Auth struct {
	Peer       netip.Addr
	Identities []Identity
	Groups     []string
}

// Authenticated reports whether there is an identity.
func (a *Auth) Authenticated() bool { return len(a.Identities) > 0 }
