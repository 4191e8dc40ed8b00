package smtpd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/smtp"
)

const (
	readerSize = 512
	writerSize = 4096
)

// session is one connection. It belongs to one goroutine; only wire.stop and wire.Close are called by others.
type session struct {
	srv  *Server
	ctx  context.Context // ends when draining is over
	wire *wire
	conn net.Conn // wire, or TLS over it
	r    *smtp.Reader
	w    *smtp.Writer
	log  *slog.Logger

	info     mta.Session
	listener string               // the local end as text
	received *metric.CounterValue // messages through it; nil before the first
	from     string               // the peer as text
	peer     *mta.Peer            // shared by records; replaced, never changed
	domains  map[string]*ListenerDomain

	tx      transaction
	line    []byte // the command that is answered
	content bool   // the reply is to content, not to a command line

	recipients int // accepted on this connection
	authFailed int
	closing    bool
}

// transaction is what MAIL opened.
type transaction struct {
	open   bool
	sender mta.Address
	rcpts  []mta.Address
	last   mta.Address // of rcpts; those belong to the message once there is one
	utf8   bool
	began  time.Time
}

// wirePair is a reader and a writer for the next session.
type wirePair struct {
	r *smtp.Reader
	w *smtp.Writer
}

var pairs = sync.Pool{New: func() any {
	return &wirePair{smtp.NewReader(nil, readerSize), smtp.NewWriter(nil, writerSize)}
}}

func newSession(srv *Server, ctx context.Context, conn net.Conn) *session {
	s := &session{srv: srv, ctx: ctx, wire: &wire{Conn: conn, timeout: srv.cfg.ClientTimeout.D()}}
	s.conn = s.wire
	s.info = mta.Session{
		ID:       newUUID(),
		Peer:     addrPort(conn.RemoteAddr()),
		Local:    addrPort(conn.LocalAddr()),
		Hostname: srv.cfg.Hostname,
	}
	s.info.Auth.Peer = s.info.Peer.Addr()
	s.peer = &mta.Peer{Addr: s.info.Peer.Addr()}
	s.listener, s.from = text(s.info.Local), text(s.info.Peer)
	return s
}

func text(a netip.AddrPort) string {
	if !a.IsValid() {
		return "unknown"
	}
	return a.String()
}

// newUUID returns a random UUID (RFC 9562 section 5.4).
func newUUID() string {
	var u [16]byte
	rand.Read(u[:]) //nolint:errcheck // crypto/rand.Read never fails
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	var b [36]byte
	hex.Encode(b[:8], u[:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:], u[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// setMeta fills the connection metadata (flows SM-3).
func (s *session) setMeta() {
	m := &s.info.Meta
	m.Set(mta.MetaReceptionProtocol, "ESMTP")
	m.Set(mta.MetaReceivedVia, s.listener)
	m.Set(mta.MetaReceivedFrom, s.from)
	m.Set(mta.MetaHostname, s.info.Hostname)
	for key, v := range s.srv.cfg.Meta {
		m.Set(key, v)
	}
}

// serve runs the session to its end and closes the connection.
func (s *session) serve() {
	pair := pairs.Get().(*wirePair)
	s.r, s.w = pair.r, pair.w
	s.r.Reset(s.conn)
	s.w.Reset(s.conn)
	s.log = s.srv.log
	defer func() {
		_ = s.conn.Close() // with TLS this sends close_notify
		s.r.Reset(nil)
		s.r.Shrink(readerSize)
		s.w.Reset(nil)
		pairs.Put(pair)
	}()
	defer s.recover()
	s.setMeta()
	if s.greet() {
		s.loop()
	}
	s.endTransaction()
	_ = s.w.Flush() // nobody is left to tell
}

// recover keeps a panic within its session (SD4).
func (s *session) recover() {
	p := recover()
	if p == nil {
		return
	}
	s.log.Error("panic in an SMTP session", "session", s.info.ID, "peer", s.from, "panic", fmt.Sprint(p),
		"stack", string(debug.Stack()))
	_ = s.w.WriteReply(421, "4.3.0 "+s.info.Hostname+" technical difficulties")
	_ = s.w.Flush()
}

// loop reads and answers commands until the session ends.
func (s *session) loop() {
	for !s.closing {
		if s.wire.stopping.Load() {
			s.line = nil
			s.shuttingDown()
			return
		}
		line, err := s.readLine(s.srv.cfg.LineLengthHardLimit)
		s.line = line
		if err == nil {
			s.command(line)
			continue
		}
		if !s.readFailed(err) {
			return
		}
	}
}

// readLine sends what waits, unless the next command has arrived already (RFC 2920 section 3.2), and reads a line.
func (s *session) readLine(limit int) ([]byte, error) {
	if !s.r.HasLine() {
		if err := s.w.Flush(); err != nil {
			return nil, err
		}
		s.r.Shrink(readerSize)
	}
	s.wire.begin(readCommand, s.r.Buffered() > 0)
	return s.r.ReadLine(limit)
}

// readFailed answers what can be answered and reports whether the session goes on.
func (s *session) readFailed(err error) bool {
	switch {
	case errors.Is(err, smtp.ErrLineTooLong):
		s.bad(500, "5.2.3 line too long") // flows SM-15
		return true
	case errors.Is(err, smtp.ErrLineEndless):
		s.bad(500, "5.2.3 line too long")
	case errors.Is(err, errIdle):
		s.line = nil
		s.bad(421, "4.3.2 "+s.info.Hostname+" idle too long") // flows SM-17
	case errors.Is(err, errShutdown):
		s.line = nil
		s.shuttingDown()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	default:
		s.log.Debug("SMTP session broke off", "session", s.info.ID, "peer", s.from, "err", err)
	}
	return false
}

func (s *session) shuttingDown() { s.bad(421, "4.3.2 "+s.info.Hostname+" shutting down") }

// endTransaction forgets the transaction.
func (s *session) endTransaction() {
	if s.tx.open {
		s.srv.inst.whole.ObserveSince(s.tx.began)
	}
	s.tx = transaction{}
}
