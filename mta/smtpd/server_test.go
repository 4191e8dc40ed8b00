package smtpd

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimeouts(t *testing.T) {
	tests := []struct {
		name string
		run  func(c *client)
		took time.Duration
	}{
		{"SM-17 idle", func(c *client) {
			c.want("220", "421 4.3.2 mx.test idle too long", "EOF")
		}, 60 * second},
		{"SD3 command a byte at a time", func(c *client) {
			c.want("220")
			time.Sleep(50 * second)
			for range 8 {
				c.raw("N")
				time.Sleep(10 * second)
			}
			c.want("421 4.3.2", "EOF")
		}, 130 * second},
		{"SD3 content a byte at a time", func(c *client) {
			c.want("220")
			c.ask("MAIL FROM:<a@send.example>", "250")
			c.ask("RCPT TO:<b@dest.example>", "250")
			c.ask("DATA", "354")
			for range 8 {
				time.Sleep(10 * second)
				c.raw("N")
			}
			c.want("421 4.3.2", "EOF")
		}, 80 * second},
		{"SD3 silent in content", func(c *client) {
			c.want("220")
			c.ask("MAIL FROM:<a@send.example>", "250")
			c.ask("RCPT TO:<b@dest.example>", "250")
			c.ask("DATA", "354")
			c.want("421 4.3.2", "EOF")
		}, 60 * second},
		{"hostile: silent in TLS", func(c *client) {
			c.want("220")
			c.ask("STARTTLS", "220")
			c.want("EOF")
		}, 30 * second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				begin := time.Now()
				c := b.dial(t, context.Background(), trusted)
				tolerant := *c
				tolerant.t = ignoreWriteErrors{c.t}
				tt.run(&tolerant)
				if d := time.Since(begin); d != tt.took {
					t.Errorf("took %v, want %v", d, tt.took)
				}
				c.close()
			})
		})
	}
}

// ignoreWriteErrors is for clients that write into a closed connection on purpose.
type ignoreWriteErrors struct{ testing.TB }

func (ignoreWriteErrors) Errorf(string, ...any) {}

func TestNeverReadingReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.srv.ServeConn(t.Context(), &addrConn{far, tcpAddr(here), tcpAddr(trusted)})
		}()
		begin := time.Now()
		<-done
		if d := time.Since(begin); d != 60*second {
			t.Error(d)
		}
		near.Close()
	})
}

func TestShutdown(t *testing.T) {
	t.Run("SM-17 a waiting session gets 421 at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			b := newBench(t)
			c := b.dial(t, ctx, trusted)
			c.want("220")
			c.ask("MAIL FROM:<a@send.example>", "250")
			synctest.Wait()
			begin := time.Now()
			cancel()
			c.want("421 4.3.2 mx.test shutting down", "EOF")
			<-c.done
			if time.Since(begin) != 0 || len(b.journal.all()) != 0 {
				t.Error("late, or recorded")
			}
			c.close()
		})
	})
	t.Run("content may finish", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			b := newBench(t)
			c := b.dial(t, ctx, trusted)
			c.want("220")
			c.ask("MAIL FROM:<a@send.example>", "250")
			c.ask("RCPT TO:<b@dest.example>", "250")
			c.ask("DATA", "354")
			c.raw("begin\r\n")
			synctest.Wait() // the session waits for more
			cancel()
			synctest.Wait()
			c.raw("end\r\n.\r\n")
			c.want("250 OK", "421 4.3.2", "EOF")
			c.close()
			if len(b.in.all()) != 1 {
				t.Error("lost")
			}
		})
	})
	t.Run("content is cut after the drain timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			b := newBench(t, func(_ *Config, o *Options) { o.DrainTimeout = 5 * second })
			c := b.dial(t, ctx, trusted)
			c.want("220")
			c.ask("MAIL FROM:<a@send.example>", "250")
			c.ask("RCPT TO:<b@dest.example>", "250")
			c.ask("DATA", "354")
			begin := time.Now()
			cancel()
			c.want("EOF")
			<-c.done
			if d := time.Since(begin); d != 5*second {
				t.Error(d)
			}
			c.close()
		})
	})
}

// failingListener fails as a process without file descriptors does, then gives out what it has.
type failingListener struct {
	net.Listener
	fails int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.fails > 0 {
		l.fails--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

func TestListen(t *testing.T) {
	b := newBench(t, func(c *Config, _ *Options) { c.Listen, c.MaxConnections = "127.0.0.1:0", 1 })
	if err := b.srv.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.srv.Serve(ctx, &failingListener{Listener: b.srv.ln, fails: 3}) }()
	dial := func() *client {
		conn, err := net.Dial("tcp", b.srv.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := &client{t: t, conn: conn, lines: make(chan string, 100)}
		go c.read(conn)
		return c
	}
	first := dial() // served although accepting failed at first
	first.want("220")
	second := dial()
	second.want("421 4.3.2 mx.test too many concurrent sessions. Try later", "EOF") // SM-2
	other, err := New(b.srv.cfg, b.srv.o)
	if err != nil {
		t.Fatal(err)
	}
	other.cfg.Listen = b.srv.Addr().String()
	if err := other.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), "policy.lua:1") || !strings.Contains(err.Error(), other.cfg.Listen) {
		t.Errorf("bind error %v", err)
	}
	cancel()
	first.want("421 4.3.2 mx.test shutting down", "EOF")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if d, n := b.srv.inst.denied.Value(), b.srv.inst.accepted.Value(); d != 1 || n != 1 || b.srv.inst.connections.Value() != 0 {
		t.Errorf("counted %d denied, %d accepted", d, n)
	}
	first.conn.Close()
	second.conn.Close()
}
