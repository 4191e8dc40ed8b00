package smtpc

import (
	"context"
	"net"
	"time"

	"example.com/svc/egress"
	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

const (
	readBuffer  = 1 << 10
	writeBuffer = 32 << 10 // a common message leaves in one write
	piece       = 64 << 10 // of content, that has to be taken within data_timeout
	quitTimeout = 5 * time.Second
)

// limits bound one reply.
var limits = smtp.ReplyLimits{MaxLines: 100, MaxKept: 4 << 10, MaxRead: 64 << 10}

// conn is one connection.
type conn struct {
	c   *egress.PathConfig
	p   *egress.Path
	raw net.Conn // the socket
	nc  net.Conn // raw, or TLS over it
	r   *smtp.Reader
	w   *smtp.Writer
	ext smtp.Extensions // while greeting

	pipelining, eightBit, utf8, sizes bool
	maxSize                           int64 // 0 for no limit
	info                              egress.Info

	broken  bool
	used    bool // a transaction was begun
	unclean bool // the last one failed, so RSET is due (flows SC-16)

	readBy, writeBy time.Time // deadlines in force
	writeTimeout    time.Duration
	ctx             context.Context // that ends the connection
	unwatch         func() bool

	line []byte // scratch for commands
	tx   transaction
}

var _ egress.Carrier = (*conn)(nil)

func newConn(nc net.Conn, p *egress.Path, c *egress.PathConfig) *conn {
	k := &conn{c: c, p: p, raw: nc, nc: nc, writeTimeout: c.EHLOTimeout.D()}
	k.r = smtp.NewReader(nc, readBuffer)
	k.w = smtp.NewWriter((*writer)(k), writeBuffer)
	return k
}

// Info tells who is at both ends.
func (k *conn) Info() egress.Info { return k.info }

// watch has the end of ctx break the connection (C2).
func (k *conn) watch(ctx context.Context) {
	if ctx == k.ctx {
		return
	}
	k.release()
	k.ctx = ctx
	raw := k.raw
	k.unwatch = context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
}

func (k *conn) release() {
	if k.unwatch != nil {
		k.unwatch()
		k.unwatch, k.ctx = nil, nil
	}
}

// slack is how much earlier than asked a deadline may be, so that it need not be set for every reply.
func slack(d time.Duration) time.Duration { return min(d/64, time.Second) }

// near reports whether the deadline in force will do for one that is wanted.
func near(have, want time.Time, d time.Duration) bool {
	return !have.After(want) && have.After(want.Add(-slack(d)))
}

// armRead gives the next reply the time d. The context is looked at after the deadline is set: whichever comes second,
// its end or the deadline, is seen.
func (k *conn) armRead(d time.Duration) error {
	want := time.Now().Add(d)
	if !near(k.readBy, want, d) {
		if err := k.raw.SetReadDeadline(want); err != nil {
			return err
		}
		k.readBy = want
	}
	return context.Cause(k.ctx)
}

// reply reads one reply within d.
func (k *conn) reply(d time.Duration) (smtp.Reply, error) {
	if err := k.armRead(d); err != nil {
		return smtp.Reply{}, err
	}
	return k.r.ReadReply(limits)
}

// ask sends one command and reads its reply.
func (k *conn) ask(line string, d time.Duration) (smtp.Reply, error) {
	k.writeTimeout = d
	if err := k.w.WriteLine(line); err != nil {
		return smtp.Reply{}, err
	}
	if err := k.w.Flush(); err != nil {
		return smtp.Reply{}, err
	}
	return k.reply(d)
}

// writer is the way to the peer: piece by piece, each with its time.
type writer conn

// Write sends p.
func (w *writer) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		chunk := p[:min(len(p), piece)]
		if err := w.arm(); err != nil {
			return n, err
		}
		m, err := w.nc.Write(chunk)
		n += m
		if err != nil {
			return n, err
		}
		p = p[len(chunk):]
	}
	return n, nil
}

func (w *writer) arm() error {
	want := time.Now().Add(w.writeTimeout)
	if !near(w.writeBy, want, w.writeTimeout) {
		if err := w.raw.SetWriteDeadline(want); err != nil {
			return err
		}
		w.writeBy = want
	}
	return context.Cause(w.ctx)
}

// Close says QUIT, if the connection is in step, and closes.
func (k *conn) Close() error {
	if !k.broken && (k.ctx == nil || k.ctx.Err() == nil) {
		if k.ctx == nil {
			k.watch(context.Background())
		}
		_, _ = k.ask("QUIT", quitTimeout) // RFC 5321 section 4.1.1.10; whatever the answer, the end is the same
	}
	k.release()
	k.broken = true
	return k.raw.Close()
}

// response makes what records show of a reply, with safe text (C3).
func response(rep *smtp.Reply, command string) mta.Response {
	r := rep.Response(command)
	r.Content = safe(r.Content)
	return r
}
