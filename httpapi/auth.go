package httpapi

import (
	"context"
	"crypto/sha256"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"example.com/svc/httpapi/inject"
	"example.com/svc/mta"
)

// caller is who sent a request.
type caller struct {
	inject.Origin
}

func (c *caller) trusted() bool { return slices.Contains(c.Auth.Groups, mta.TrustedHTTPGroup) }

// The rules of the built-in access list (flows HT-4).
func anyone(*caller) bool        { return true }
func trustedOnly(c *caller) bool { return c.trusted() }
func trustedOrKnown(c *caller) bool {
	return c.trusted() || c.Auth.Authenticated()
}

// authenticate finds out who sent r. A status other than 0 ends the request.
func (s *Server) authenticate(r *http.Request) (who *caller, status int, text string) {
	peer, local := remote(r)
	who = &caller{inject.Origin{Auth: mta.Auth{Peer: peer}, Peer: peer, Local: local, Hostname: s.hostname}}
	if s.cfg.TrustedHosts.Contains(peer) {
		if !s.knownHost(r.Host) {
			// A trusted address alone must not be usable through a browser that follows a foreign name.
			return nil, http.StatusMisdirectedRequest, "unknown host name; use the address, localhost or the listener's hostname"
		}
		who.Auth.Groups = append(who.Auth.Groups, mta.TrustedHTTPGroup)
	}
	header := r.Header.Get("Authorization")
	if header == "" {
		return who, 0, ""
	}
	user, password, ok := r.BasicAuth()
	if !ok {
		return nil, http.StatusBadRequest, "Malformed or unsupported Authorization header"
	}
	good, err := s.validBasic(r.Context(), user, password)
	switch {
	case err != nil:
		s.log.Error("authentication handler failed", "err", err)
		return nil, http.StatusInternalServerError, "try again later"
	case !good:
		return nil, http.StatusUnauthorized, mta.ContextHTTPBasic + " Authentication Failed for " + user
	}
	who.Auth.Identities = append(who.Auth.Identities, mta.Identity{Identity: user, Context: mta.ContextHTTPBasic})
	return who, 0, ""
}

// knownHost reports whether host is a name this listener goes by.
func (s *Server) knownHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "" || strings.EqualFold(host, "localhost") || strings.EqualFold(host, s.hostname)
}

// loginTTL is how long the answer about credentials is kept (flows HT-5).
const loginTTL = time.Minute

// validBasic asks the policy, and remembers the answer for a while (flows HT-5).
func (s *Server) validBasic(ctx context.Context, user, password string) (bool, error) {
	if !OnValidateBasic.Handled(s.o.Bus) {
		return false, nil
	}
	h := sha256.New()
	h.Write([]byte(user))
	h.Write([]byte{0})
	h.Write([]byte(password))
	var key [sha256.Size]byte
	h.Sum(key[:0])
	return s.logins.Fetch(ctx, key, func(ctx context.Context) (bool, time.Duration, error) {
		good, _, err := OnValidateBasic.Call(ctx, s.o.Bus, BasicAuth{User: user, Password: password})
		return good, loginTTL, err
	})
}

func stack() string { return string(debug.Stack()) }
