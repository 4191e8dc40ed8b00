package smtpd

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// Ends of a wait for the peer.
var (
	errIdle     = errors.New("smtpd: the peer was silent or too slow")
	errShutdown = errors.New("smtpd: shutting down")
)

// What a session is reading, which decides how long it waits (SD3) and whether a shutdown ends the wait.
type readMode uint8

const (
	readCommand readMode = iota
	readContent
	readHandshake
)

const (
	minContentRate   = 500 // bytes a second, on average, after a grace of one timeout
	maxContentTime   = time.Hour
	handshakeTimeout = 30 * time.Second
)

// wire is a connection that keeps the deadlines of a session (SD3). Reads and writes belong to the session's goroutine;
// stop may be called by any.
type wire struct {
	net.Conn
	timeout time.Duration

	mode    readMode
	started time.Time // of the unit that is read; zero before the first byte of a command
	got     int64     // bytes of the unit

	stopping atomic.Bool
}

// begin says what is read next. buffered says that its first bytes have been read already.
func (w *wire) begin(m readMode, buffered bool) {
	w.mode, w.got, w.started = m, 0, time.Time{}
	if buffered || m != readCommand {
		w.started = time.Now()
	}
}

// deadline returns when a read that begins now has to end.
func (w *wire) deadline(now time.Time) time.Time {
	silence := now.Add(w.timeout)
	if w.started.IsZero() {
		return silence
	}
	var end time.Time
	switch w.mode {
	case readCommand:
		end = w.started.Add(w.timeout)
	case readHandshake:
		end = w.started.Add(handshakeTimeout)
	case readContent:
		rate := w.timeout + time.Duration(w.got)*(time.Second/minContentRate)
		end = w.started.Add(min(rate, max(maxContentTime, w.timeout)))
	}
	if end.Before(silence) {
		return end
	}
	return silence
}

// Read returns errIdle when the deadline passed and, while a command is awaited, errShutdown after stop.
func (w *wire) Read(p []byte) (int, error) {
	for {
		now := time.Now()
		deadline := w.deadline(now)
		if err := w.SetReadDeadline(deadline); err != nil {
			return 0, err
		}
		// stop sets the flag first and the deadline second, so either this sees the flag or Read is woken.
		if w.mode == readCommand && w.stopping.Load() {
			return 0, errShutdown
		}
		n, err := w.Conn.Read(p)
		if n > 0 {
			if w.started.IsZero() {
				w.started = time.Now()
			}
			w.got += int64(n)
			return n, nil
		}
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		switch {
		case w.stopping.Load() && w.mode == readCommand:
			return 0, errShutdown
		case w.stopping.Load() && time.Now().Before(deadline):
			continue // woken by stop amid content, which may finish
		}
		return 0, errIdle
	}
}

// Write gives the peer one timeout to take p.
func (w *wire) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

// stop ends the wait for a command.
func (w *wire) stop() {
	w.stopping.Store(true)
	_ = w.SetReadDeadline(time.Unix(1, 0)) // fails on a closed connection only, which is awake
}
