package smtpc

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"example.com/svc/egress"
	"example.com/svc/egress/dial"
	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

// Options are what an Opener works with. The zero value connects over TCP and trusts the roots of the system.
type Options struct {
	// Dialer makes connections.
	Dialer dial.Dialer
	// Roots are the certificate authorities that are trusted; nil are those of the system.
	Roots *x509.CertPool
}

// Opener opens SMTP connections. It is safe for concurrent use.
type Opener struct {
	o Options
}

var _ egress.Opener = (*Opener)(nil)

// New returns an Opener.
func New(o Options) *Opener { return &Opener{o: o} }

// protocolName is how records name the protocol.
const protocolName = "ESMTP"

// Open connects to p.Target. See [egress.Opener].
func (o *Opener) Open(ctx context.Context, p *egress.Path, c *egress.PathConfig) (egress.Carrier, error) {
	req := dial.Request{Target: netip.AddrPortFrom(p.Target.Addr, p.Port), Timeout: c.ConnectTimeout.D()}
	if p.Source != nil && p.Source.SourceAddress != nil {
		req.Source = *p.Source.SourceAddress
	}
	nc, err := o.o.Dialer.Dial(ctx, req)
	if err != nil {
		return nil, err
	}
	k := newConn(nc, p, c)
	if err := o.greet(ctx, k); err != nil {
		k.broken = true
		_ = k.Close() // the connection is of no use; what went wrong is in err
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, err
	}
	k.release() // ctx bounds Open only
	k.readBy, k.writeBy = time.Time{}, time.Time{}
	return k, nil
}

// greet brings a fresh connection to where messages can be sent.
func (o *Opener) greet(ctx context.Context, k *conn) error {
	k.watch(ctx)
	banner, err := k.reply(k.c.BannerTimeout.D())
	switch {
	case err != nil:
		return k.stepError("banner", k.c.BannerTimeout.D(), err)
	case banner.Code != 220: // flows SC-9
		return refusedError("banner", banner)
	}
	if err := k.hello(); err != nil {
		return err
	}
	if err := o.secure(ctx, k); err != nil {
		return err
	}
	k.adopt()
	return nil
}

// hello says EHLO and keeps what is offered (RFC 5321 section 4.1.1.1). There is no fall-back to HELO (flows SC-10).
func (k *conn) hello() error {
	k.ext = nil
	d := k.c.EHLOTimeout.D()
	rep, err := k.ask("EHLO "+k.p.Hello, d)
	switch {
	case err != nil:
		return k.stepError("EHLO", d, err)
	case rep.Code != 250:
		return refusedError("EHLO", rep)
	}
	k.ext = smtp.ParseExtensions(rep)
	return nil
}

// adopt takes over what was offered last.
func (k *conn) adopt() {
	k.pipelining = k.c.EnablePipelining && k.ext.Has("PIPELINING")
	k.eightBit = k.ext.Has("8BITMIME")
	k.utf8 = k.ext.Has("SMTPUTF8")
	k.sizes = k.ext.Has("SIZE")
	k.maxSize, _ = k.ext.Size()
	k.info = egress.Info{
		Peer:          &mta.Peer{Name: k.p.Target.Name, Addr: k.p.Target.Addr, Secure: k.p.Target.Secure},
		SourceAddress: &mta.SourceAddress{Address: localAddr(k.raw)},
		TLS:           k.info.TLS,
		Protocol:      protocolName,
	}
	k.ext = nil
}

func localAddr(c net.Conn) netip.AddrPort {
	if a, ok := c.LocalAddr().(*net.TCPAddr); ok {
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// refusedError says that the peer answered, but not what was needed.
func refusedError(step string, rep smtp.Reply) error {
	r := response(&rep, "")
	return fmt.Errorf("%s was answered %s", step, clip(r.String()))
}

// stepError says what went wrong while a step was awaited.
func (k *conn) stepError(step string, d fmt.Stringer, err error) error {
	if isTimeout(err) {
		return fmt.Errorf("timed out waiting %s for the answer to %s: %w", d, step, err)
	}
	return fmt.Errorf("%s: %w", step, err)
}

// isTimeout reports whether err is a deadline that passed.
func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
