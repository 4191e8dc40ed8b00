//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/svc/httpapi"
	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/spool"
	"example.com/svc/spool/memory"
)

// diskRig is a server on two spools that can be made to fail. It has no route for mail: what it accepts stays.
type diskRig struct {
	meta, data *memory.Spool
	srv        *server.Server
}

func newDiskRig(t *testing.T) *diskRig {
	t.Helper()
	r := &diskRig{meta: memory.New(), data: memory.New()}
	in, err := loadPolicy(t.Context(), policySource{name: "policy.lua", text: []byte(`local svc = require 'svc'
svc.on('get_queue_config', function()
  return svc.make_queue_config { retry_interval = '1h', protocol = { smtp = { mx_list = { '` + sinkHost(refusing(t)) + `' } } } }
end)
svc.on('get_egress_path_config', function() return svc.make_egress_path { prohibited_hosts = {} } end)
`)}, newLog(t.Output(), 8, false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.engine.Close)
	err = in.builder.Edit(func(c *server.Config) {
		c.Meta, c.Data = r.meta, r.data
		c.SMTP = []smtpd.Config{settings.New(func(c *smtpd.Config) { c.Listen = "127.0.0.1:0" })}
		c.HTTP = []httpapi.Config{settings.New(func(c *httpapi.Config) {
			c.Listen = settings.AddrPort{AddrPort: netip.MustParseAddrPort("127.0.0.1:0")}
		})}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.srv, err = in.builder.Build(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := background(func() error { return r.srv.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-r.srv.Ready()
	return r
}

// fail makes the writes of the named spool fail with err; nil ends that.
func (r *diskRig) fail(name string, err error) {
	sp := r.data
	if name == server.MetaSpool {
		sp = r.meta
	}
	if err == nil {
		sp.SetFault(nil)
		return
	}
	sp.SetFault(func(op memory.Op, _ spool.ID) error {
		if op == memory.OpPut {
			return fmt.Errorf("write: %w", err)
		}
		return nil
	})
}

// smtpSession is one session with a listener.
type smtpSession struct {
	conn net.Conn
	r    *bufio.Reader
}

func newSession(c net.Conn) *smtpSession { return &smtpSession{conn: c, r: bufio.NewReader(c)} }

func (r *diskRig) dial(t *testing.T) *smtpSession {
	t.Helper()
	c, err := net.Dial("tcp", r.srv.SMTPAddrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	s := newSession(c)
	s.reply(t)
	s.say(t, "EHLO client.example")
	return s
}

func (s *smtpSession) say(t *testing.T, line string) string {
	t.Helper()
	if _, err := io.WriteString(s.conn, line+"\r\n"); err != nil {
		t.Fatal(err)
	}
	return s.reply(t)
}

// reply returns the last line of a reply.
func (s *smtpSession) reply(t *testing.T) string {
	t.Helper()
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if len(line) < 4 || line[3] != '-' {
			return strings.TrimSpace(line)
		}
	}
}

// message sends one message and returns the reply to its end.
func (s *smtpSession) message(t *testing.T) string {
	t.Helper()
	for _, line := range []string{"MAIL FROM:<a@load.example>", "RCPT TO:<b@load.example>", "DATA"} {
		if got := s.say(t, line); got[0] != '2' && got[0] != '3' {
			t.Fatalf("%s: %s", line, got)
		}
	}
	return s.say(t, "Subject: x\r\n\r\nhello\r\n.")
}

// inject posts one message and returns the status and the body of the answer.
func (r *diskRig) inject(t *testing.T) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: time.Minute}
	defer client.CloseIdleConnections()
	res, err := client.Post("http://"+r.srv.HTTPAddrs()[0].String()+"/api/inject/v1", "application/json",
		strings.NewReader(`{"envelope_sender":"a@load.example","recipients":[{"email":"b@load.example"}],"content":"Subject: x\r\n\r\nhello\r\n"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// A write that fails, of content or of metadata, is never answered with a success (Q1), and mail is accepted again as
// soon as writes succeed.
func TestDiskFaults(t *testing.T) {
	for _, tc := range []struct {
		name string
		err  error
		want string // the start of the reply
	}{
		{"disk full", spool.ErrFull, "452 4.3.1"},
		{"write fails", syscall.EIO, "4"},
		{"fsync failed, spool unhealthy", fmt.Errorf("%w: %w", spool.ErrUnhealthy, syscall.EIO), "421 4.3.2"},
		{"something else", errors.New("on purpose"), "4"},
	} {
		for _, name := range []string{server.MetaSpool, server.DataSpool} {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				r := newDiskRig(t)
				r.fail(name, tc.err)
				s := r.dial(t)
				if got := s.message(t); !strings.HasPrefix(got, tc.want) {
					t.Errorf("SMTP answered %q, want %q", got, tc.want)
				}
				if code, body := r.inject(t); code/100 == 2 && !strings.Contains(body, `"success_count":0`) {
					t.Errorf("HTTP answered %d %s", code, body)
				}
				if n, m := r.meta.Len(), r.data.Len(); n != 0 || m != 0 || r.srv.Queued() != 0 {
					t.Errorf("%d metadata and %d data stay, %d queued", n, m, r.srv.Queued())
				}
				r.fail(name, nil)
				if got := r.dial(t).message(t); !strings.HasPrefix(got, "250") {
					t.Errorf("after the fault SMTP answered %q", got)
				}
				if code, body := r.inject(t); code != http.StatusOK || !strings.Contains(body, `"success_count":1`) {
					t.Errorf("after the fault HTTP answered %d %s", code, body)
				}
				if n, m := r.meta.Len(), r.data.Len(); n != 2 || m != 2 || r.srv.Queued() != 2 {
					t.Errorf("after the fault: %d metadata, %d data, %d queued, want 2 of each", n, m, r.srv.Queued())
				}
			})
		}
	}
}
