package dial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// ErrFamily is the cause when source and target are not both IPv4 or both IPv6 (flows SC-9).
var ErrFamily = errors.New("source address and target are of different families")

// Request is one connection that is wanted.
type Request struct {
	// Source is the local address to bind; the zero Addr lets the kernel choose.
	Source netip.Addr
	// Target is where to connect to.
	Target netip.AddrPort
	// Timeout bounds the dial; 0 leaves it to the context.
	Timeout time.Duration
}

// Network makes the connection once the request was checked. It is replaced in tests.
type Network func(ctx context.Context, r Request) (net.Conn, error)

// Dialer opens connections. The zero value uses TCP. It is safe for concurrent use.
type Dialer struct {
	// Network replaces TCP; nil is TCP.
	Network Network
}

// Dial opens a connection for r. Its error is an [*Error].
func (d *Dialer) Dial(ctx context.Context, r Request) (net.Conn, error) {
	if !r.Target.IsValid() {
		return nil, &Error{Request: r, Err: errors.New("no target")}
	}
	if !r.usable() { // DI1
		return nil, &Error{Request: r, Err: ErrFamily}
	}
	if r.Timeout > 0 { // DI2
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout)
		defer cancel()
	}
	network := d.Network
	if network == nil {
		network = tcp
	}
	c, err := network(ctx, r)
	if err != nil {
		return nil, &Error{Request: r, Err: err}
	}
	return c, nil
}

// usable says whether source and target are of one family.
func (r *Request) usable() bool {
	return !r.Source.IsValid() || r.Source.Unmap().Is4() == r.Target.Addr().Unmap().Is4()
}

func tcp(ctx context.Context, r Request) (net.Conn, error) {
	var d net.Dialer
	if r.Source.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(r.Source.Unmap(), 0))
	}
	target := netip.AddrPortFrom(r.Target.Addr().Unmap(), r.Target.Port())
	return d.DialContext(ctx, "tcp", target.String())
}

// Error is the failure of a dial.
type Error struct {
	// Request is what was asked for.
	Request Request
	// Err is the cause.
	Err error
}

// Error names target, source and cause.
func (e *Error) Error() string {
	from := ""
	if e.Request.Source.IsValid() {
		from = " from " + e.Request.Source.String()
	}
	return fmt.Sprintf("connect to %s%s: %s", e.Request.Target, from, e.cause())
}

// cause is the text of the innermost error that the operating system gave, without repeating the addresses.
func (e *Error) cause() string {
	var sys *os.SyscallError
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded), errors.Is(e.Err, os.ErrDeadlineExceeded):
		return "timed out"
	case errors.As(e.Err, &sys):
		return sys.Err.Error()
	}
	return e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Timeout says that time ran out.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// Unplumbed says that this host does not have the source address (EADDRNOTAVAIL at bind, flows SS-10).
func (e *Error) Unplumbed() bool {
	var sys *os.SyscallError
	return e.Request.Source.IsValid() && errors.As(e.Err, &sys) &&
		sys.Syscall == "bind" && errors.Is(sys.Err, syscall.EADDRNOTAVAIL)
}
