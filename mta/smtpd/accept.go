package smtpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	minPause    = 5 * time.Millisecond
	maxPause    = time.Second
	denyTimeout = 2 * time.Second
)

// Serve accepts connections of ln until ctx ends. Then it closes ln, sends 421 4.3.2 to sessions that wait for a
// command, lets sessions that receive content finish within the drain timeout, cuts what is left, and returns after all
// sessions ended. The error is nil after an orderly end. Running out of file descriptors pauses accepting and leaves
// sessions alone.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = ln.Close() }) // wakes Accept
	defer stop()
	var wg sync.WaitGroup
	err := s.accept(ctx, work, ln, &wg)
	_ = ln.Close() // closed already unless accepting failed
	s.drain(cancel, &wg)
	return err
}

func (s *Server) accept(ctx, work context.Context, ln net.Listener, wg *sync.WaitGroup) error {
	pause := minPause
	for {
		conn, err := ln.Accept()
		switch {
		case err == nil:
			pause = minPause
			s.admit(work, conn, wg)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("SMTP listener%s: %w", at(s.cfg.Source), err)
		default:
			s.log.Warn("accepting a connection failed", "err", err, "pause", pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil
			}
			pause = min(2*pause, maxPause)
		}
	}
}

// admit starts a session, or refuses the connection above max_connections (flows SM-2).
func (s *Server) admit(work context.Context, conn net.Conn, wg *sync.WaitGroup) {
	if s.live.Load() >= int64(s.cfg.MaxConnections) {
		s.inst.denied.Inc()
		select {
		case s.deny <- struct{}{}:
			wg.Go(func() {
				s.refuse(conn)
				<-s.deny
			})
		default:
			_ = conn.Close()
		}
		return
	}
	ss := newSession(s, work, conn)
	s.track(ss)
	wg.Go(func() {
		defer s.untrack(ss)
		ss.serve()
	})
}

// refuse tells a surplus connection so, within two seconds.
func (s *Server) refuse(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(denyTimeout))
	_, _ = fmt.Fprintf(conn, "421 4.3.2 %s too many concurrent sessions. Try later\r\n", s.cfg.Hostname)
}

// drain stops the sessions and awaits them.
func (s *Server) drain(cancel context.CancelFunc, wg *sync.WaitGroup) {
	s.each(func(ss *session) { ss.wire.stop() })
	cut := time.AfterFunc(s.o.DrainTimeout, func() {
		cancel()
		s.each(func(ss *session) { _ = ss.wire.Close() })
	})
	defer cut.Stop()
	wg.Wait()
}
