package smtpc

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// half is one direction of an in-memory connection: a bounded buffer with deadlines for both ends.
type half struct {
	mu       sync.Mutex
	cond     *sync.Cond
	buf      []byte
	max      int
	closed   bool // by the writer
	gone     bool // by the reader
	rd, wr   time.Time
	rdt, wrt *time.Timer
}

func newHalf(limit int) *half {
	h := &half{max: limit}
	h.cond = sync.NewCond(&h.mu)
	return h
}

var errReset = errors.New("connection reset by peer")

func past(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case past(h.rd):
			return 0, os.ErrDeadlineExceeded
		case h.gone:
			return 0, net.ErrClosed
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[:copy(h.buf, h.buf[n:])]
			h.cond.Broadcast()
			return n, nil
		case h.closed:
			return 0, io.EOF
		}
		h.cond.Wait()
	}
}

func (h *half) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(p) > 0 {
		switch {
		case past(h.wr):
			return n, os.ErrDeadlineExceeded
		case h.closed:
			return n, net.ErrClosed
		case h.gone:
			return n, errReset
		}
		if room := h.max - len(h.buf); room > 0 {
			m := min(room, len(p))
			h.buf = append(h.buf, p[:m]...)
			p, n = p[m:], n+m
			h.cond.Broadcast()
			continue
		}
		h.cond.Wait()
	}
	return n, nil
}

func (h *half) deadline(t time.Time, at *time.Time, timer **time.Timer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*at = t
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
	if !t.IsZero() {
		*timer = time.AfterFunc(time.Until(t), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.cond.Broadcast()
		})
	}
	h.cond.Broadcast()
}

func (h *half) end(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
	h.cond.Broadcast()
}

// memConn is one end.
type memConn struct {
	in, out       *half
	local, remote net.Addr
}

// memPipe returns both ends of a connection whose directions hold up to 64 KiB.
func memPipe() (client, server *memConn) {
	a, b := newHalf(64<<10), newHalf(64<<10)
	ca := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 4711}
	sa := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 25}
	return &memConn{a, b, ca, sa}, &memConn{b, a, sa, ca}
}

func (c *memConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *memConn) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *memConn) LocalAddr() net.Addr         { return c.local }
func (c *memConn) RemoteAddr() net.Addr        { return c.remote }

func (c *memConn) Close() error {
	c.out.end(func() { c.out.closed = true })
	c.in.end(func() { c.in.gone = true; c.in.buf = nil })
	for _, h := range []struct {
		h *half
		t **time.Timer
	}{{c.in, &c.in.rdt}, {c.out, &c.out.wrt}} {
		h.h.end(func() {
			if *h.t != nil {
				(*h.t).Stop()
			}
		})
	}
	return nil
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.deadline(t, &c.in.rd, &c.in.rdt)
	return nil
}

func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.deadline(t, &c.out.wr, &c.out.wrt)
	return nil
}

func (c *memConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}
