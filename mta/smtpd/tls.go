package smtpd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"sync"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/settings"
)

// certificateAge is how long a certificate is used before it is read again (flows SM-24).
const certificateAge = 5 * time.Minute

// loadTimeout bounds the reading of a certificate.
const loadTimeout = 10 * time.Second

// tlsKeeper holds the certificate of a listener. It is safe for concurrent use.
type tlsKeeper struct {
	cfg  *Config
	keys settings.Loader
	conf *tls.Config

	mu   sync.Mutex
	cert *tls.Certificate
	read time.Time
}

// newTLSKeeper reads the certificate once when it is configured, so that a wrong one is found at start.
func newTLSKeeper(cfg *Config, keys settings.Loader) (*tlsKeeper, error) {
	own := *cfg
	k := &tlsKeeper{cfg: &own, keys: keys}
	k.conf = &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) { return k.certificate(h.Context()) },
	}
	if own.TLSCertificate.IsZero() {
		return k, nil // made at the first handshake
	}
	_, err := k.certificate(context.Background())
	return k, err
}

// certificate returns the certificate, read again when it is old. A failure to read it again keeps the old one.
func (k *tlsKeeper) certificate(ctx context.Context) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.cert != nil && (k.cfg.TLSCertificate.IsZero() || now.Sub(k.read) < certificateAge) {
		return k.cert, nil
	}
	cert, err := k.load(ctx, now)
	if err != nil && k.cert == nil {
		return nil, err
	}
	if err == nil {
		k.cert = cert
	}
	k.read = now
	return k.cert, nil
}

func (k *tlsKeeper) load(ctx context.Context, now time.Time) (*tls.Certificate, error) {
	if k.cfg.TLSCertificate.IsZero() {
		return selfSigned(k.cfg.Hostname, now)
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	cert, err := k.cfg.TLSCertificate.Load(ctx, k.keys)
	if err != nil {
		return nil, fmt.Errorf("tls_certificate: %w", err)
	}
	key, err := k.cfg.TLSPrivateKey.Load(ctx, k.keys)
	if err != nil {
		return nil, fmt.Errorf("tls_private_key: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls_certificate: %w", err)
	}
	return &pair, nil
}

// selfSigned makes a certificate for host that is good for ten years.
func selfSigned(host string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("self-signed certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("self-signed certificate: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: host},
		DNSNames:     []string{host},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(10, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("self-signed certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// startTLS answers STARTTLS (RFC 3207). A failed handshake closes the connection.
func (s *session) startTLS() {
	if s.info.TLS != nil {
		s.bad(501, "5.5.1 TLS is active already") // flows SM-23
		return
	}
	if _, err := s.srv.tls.certificate(s.ctx); err != nil {
		s.log.Error("no certificate for STARTTLS", "session", s.info.ID, "err", err)
		s.bad(454, "4.7.0 TLS is not available") // RFC 3207 section 4
		return
	}
	s.ok(220, "2.0.0 ready for TLS")
	if s.closing || s.w.Flush() != nil {
		s.closing = true
		return
	}
	s.r.Discard() // SD2
	s.endTransaction()
	s.wire.begin(readHandshake, true)
	conn := tls.Server(s.wire, s.srv.tls.conf)
	if err := conn.HandshakeContext(s.ctx); err != nil {
		s.log.Info("TLS handshake failed", "session", s.info.ID, "peer", s.from, "err", err)
		s.closing = true
		return
	}
	s.secured(conn)
}

// secured goes on over TLS. What the client said before is forgotten (RFC 3207 section 4.2).
func (s *session) secured(conn *tls.Conn) {
	st := conn.ConnectionState()
	s.conn = conn
	s.r.Reset(conn)
	s.w.Reset(conn)
	s.info.Hello = ""
	s.peer = &mta.Peer{Addr: s.peer.Addr}
	s.info.TLS = &mta.TLSInfo{Version: versionName(st.Version), Cipher: tls.CipherSuiteName(st.CipherSuite)}
	m := &s.info.Meta
	m.Delete(mta.MetaEHLODomain)
	m.Set(mta.MetaTLSCipher, s.info.TLS.Cipher)
	m.Set(mta.MetaTLSVersion, s.info.TLS.Version)
}

func versionName(v uint16) string {
	switch v {
	case tls.VersionTLS13:
		return "TLSv1.3"
	case tls.VersionTLS12:
		return "TLSv1.2"
	}
	return tls.VersionName(v)
}
