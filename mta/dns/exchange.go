package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	wire "github.com/miekg/dns"
)

// maxStray is how many datagrams that do not answer are read before a request
// is given up (RFC 5452 section 9.2 leaves the number to us).
const maxStray = 64

var buffers = sync.Pool{New: func() any { b := make([]byte, 4096); return &b }}

// dialServer opens a socket of its own for one request, so that the system
// draws a new source port (RFC 5452 section 9.2). The UDP socket is connected:
// the kernel drops what comes from elsewhere.
func dialServer(ctx context.Context, network string, s Server) (net.Conn, error) {
	var d net.Dialer
	if s.Bind.Addr().IsValid() {
		if network == "udp" {
			d.LocalAddr = net.UDPAddrFromAddrPort(s.Bind)
		} else {
			d.LocalAddr = net.TCPAddrFromAddrPort(s.Bind)
		}
	}
	return d.DialContext(ctx, network, s.Addr.String())
}

// exchange asks one server, within the timeout for each transport.
func (s *Stub) exchange(ctx context.Context, srv Server, name string, qtype Type) (*wire.Msg, error) {
	o := options{edns: s.cfg.EDNS0, rd: s.cfg.RecursionDesired, ad: s.cfg.TrustAD}
	m, err := s.request(ctx, srv, name, qtype, o)
	if errors.Is(err, errNoEDNS) {
		o.edns = false // RFC 6891 section 7: ask without
		m, err = s.request(ctx, srv, name, qtype, o)
	}
	return m, err
}

func (s *Stub) request(ctx context.Context, srv Server, name string, qtype Type, o options) (*wire.Msg, error) {
	if srv.Protocol != TCPOnly {
		o.mixed = s.cfg.CaseRandomization
		m, err := s.roundTrip(ctx, "udp", srv, name, qtype, o)
		again := err != nil && srv.Protocol == UDPThenTCP && ctx.Err() == nil &&
			(errors.Is(err, errTruncated) || s.cfg.TryTCPOnError && !errors.Is(err, errNoEDNS))
		if !again {
			return m, err
		}
		o.mixed = false
	}
	return s.roundTrip(ctx, "tcp", srv, name, qtype, o)
}

func (s *Stub) roundTrip(ctx context.Context, network string, srv Server, name string, qtype Type, o options) (*wire.Msg, error) {
	q := newQuestion(name, qtype, o.mixed)
	packet, err := q.pack(o)
	if err != nil {
		return nil, fmt.Errorf("dns: pack question: %w", err)
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	s.stats.queries.Add(1)
	conn, err := s.cfg.Dial(ctx, network, srv)
	if err != nil {
		return nil, fmt.Errorf("dns: dial %s %s: %w", network, srv.Addr, err)
	}
	defer conn.Close()
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = conn.SetDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-woken // D2
		}
	}()
	var m *wire.Msg
	if network == "udp" {
		m, err = s.overUDP(conn, packet, q, o)
	} else {
		m, err = overTCP(conn, packet, q)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("dns: ask %s over %s: %w", srv.Addr, network, err)
	}
	if o.edns && (m.Rcode == wire.RcodeFormatError || m.Rcode == wire.RcodeNotImplemented) {
		return nil, errNoEDNS
	}
	return m, nil
}

func (s *Stub) overUDP(conn net.Conn, packet []byte, q question, o options) (*wire.Msg, error) {
	if _, err := conn.Write(packet); err != nil {
		return nil, err
	}
	bp := buffers.Get().(*[]byte)
	defer buffers.Put(bp)
	for range maxStray {
		n, err := conn.Read(*bp)
		if err != nil {
			return nil, err
		}
		m, err := q.parse((*bp)[:n], o.mixed)
		if !errors.Is(err, errNotOurs) {
			return m, err
		}
		s.stats.dropped.Add(1)
	}
	return nil, fmt.Errorf("%d datagrams: %w", maxStray, errNotOurs)
}

// overTCP sends the question with its length in front (RFC 1035 section 4.2.2)
// in one write (RFC 7766 section 8).
func overTCP(conn net.Conn, packet []byte, q question) (*wire.Msg, error) {
	out := make([]byte, 2, 2+len(packet))
	binary.BigEndian.PutUint16(out, uint16(len(packet)))
	if _, err := conn.Write(append(out, packet...)); err != nil {
		return nil, err
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	in := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, in); err != nil {
		return nil, err
	}
	return q.parse(in, false)
}
