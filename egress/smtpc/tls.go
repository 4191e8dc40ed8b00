package smtpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"time"

	"example.com/svc/egress"
	"example.com/svc/mta"
)

// minHandshake is what a handshake may take even when the reply to STARTTLS may not.
const minHandshake = 30 * time.Second

var errNotOffered = errors.New("STARTTLS is required and was not offered")

// secure settles TLS as the path demands (flows TL-1 to TL-3).
func (o *Opener) secure(ctx context.Context, k *conn) error {
	mode := k.c.EnableTLS
	offered := k.ext.Has("STARTTLS")
	switch {
	case mode == egress.TLSDisabled:
		return nil
	case mode.Opportunistic() && (!offered || k.p.AvoidTLS):
		return nil
	case !offered:
		return &egress.TLSError{Err: errNotOffered} // flows TL-2
	}
	// With reconnecting the insecure mode does not go on over a connection of doubtful state (flows TL-9).
	lenient := mode == egress.TLSOpportunisticInsecure && !k.c.ReconnectWithoutTLS
	d := k.c.StartTLSTimeout.D()
	rep, err := k.ask("STARTTLS", d)
	switch {
	case err != nil:
		return &egress.TLSError{Handshake: true, Err: k.stepError("STARTTLS", d, err)}
	case rep.Code == 421:
		return refusedError("STARTTLS", rep)
	case rep.Code != 220 && lenient:
		return nil
	case rep.Code != 220:
		return &egress.TLSError{Handshake: true, Err: refusedError("STARTTLS", rep)}
	}
	if err := o.handshake(ctx, k, mode.Insecure(), max(d, minHandshake)); err != nil {
		if !lenient {
			return &egress.TLSError{Handshake: true, Err: err}
		}
		return k.hello() // in clear text; when the peer does not follow, the host fails
	}
	if err := k.hello(); err != nil { // flows TL-3
		return &egress.TLSError{Handshake: true, Err: fmt.Errorf("after the handshake: %w", err)}
	}
	return nil
}

// handshake turns the connection into one with TLS.
func (o *Opener) handshake(ctx context.Context, k *conn, insecure bool, d time.Duration) error {
	k.r.Discard() // C4, CVE-2011-0411
	cfg := &tls.Config{
		ServerName: k.p.Target.Name, RootCAs: o.o.Roots, MinVersion: tls.VersionTLS12,
	}
	if insecure {
		cfg.InsecureSkipVerify = true
		cfg.MinVersion = tls.VersionTLS10 // better than clear text, which is what this mode would take instead
	}
	t := tls.Client(k.raw, cfg)
	if err := k.raw.SetDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	k.readBy, k.writeBy = time.Time{}, time.Time{}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := t.Handshake(); err != nil { // bounded by the deadline, and by ctx through watch
		k.r.Reset(k.raw)
		if isTimeout(err) {
			return fmt.Errorf("handshake timed out after %s", d)
		}
		return fmt.Errorf("handshake: %s", safe(clip(err.Error())))
	}
	k.nc = t
	k.r.Reset(t)
	k.w.Reset((*writer)(k))
	k.info.TLS = tlsInfo(t.ConnectionState())
	return nil
}

func tlsInfo(s tls.ConnectionState) *mta.TLSInfo {
	info := &mta.TLSInfo{Version: versionName(s.Version), Cipher: tls.CipherSuiteName(s.CipherSuite)}
	if len(s.VerifiedChains) > 0 {
		info.PeerName = subject(s.VerifiedChains[0][0])
	}
	return info
}

func versionName(v uint16) string {
	switch v {
	case tls.VersionTLS13:
		return "TLSv1.3"
	case tls.VersionTLS12:
		return "TLSv1.2"
	case tls.VersionTLS11:
		return "TLSv1.1"
	case tls.VersionTLS10:
		return "TLSv1"
	}
	return fmt.Sprintf("0x%04x", v)
}

// attributes are the usual short names of subject attributes (RFC 4514 section 3).
var attributes = []struct {
	oid  asn1.ObjectIdentifier
	name string
}{
	{asn1.ObjectIdentifier{2, 5, 4, 3}, "CN"}, {asn1.ObjectIdentifier{2, 5, 4, 6}, "C"},
	{asn1.ObjectIdentifier{2, 5, 4, 7}, "L"}, {asn1.ObjectIdentifier{2, 5, 4, 8}, "ST"},
	{asn1.ObjectIdentifier{2, 5, 4, 10}, "O"}, {asn1.ObjectIdentifier{2, 5, 4, 11}, "OU"},
}

// subject lists the subject of a certificate as "KEY=value".
func subject(c *x509.Certificate) []string {
	var out []string
	for _, n := range c.Subject.Names {
		key := n.Type.String()
		for _, a := range attributes {
			if a.oid.Equal(n.Type) {
				key = a.name
			}
		}
		out = append(out, key+"="+safe(clip(fmt.Sprint(n.Value))))
	}
	return out
}
