package smtpd

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
	"example.com/svc/spool/memory"
)

// inbox is an Inbound that keeps what it gets, or fails as told.
type inbox struct {
	mu   sync.Mutex
	msgs []*mta.Message
	fail func(ctx context.Context, ms []*mta.Message) error
}

func (b *inbox) Insert(ctx context.Context, ms ...*mta.Message) error {
	if b.fail != nil {
		if err := b.fail(ctx, ms); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.msgs = append(b.msgs, ms...)
	return nil
}

func (b *inbox) all() []*mta.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.msgs
}

// journal keeps records.
type journal struct {
	mu      sync.Mutex
	records []*mta.Record
}

func (j *journal) Record(_ context.Context, _ *mta.Message, r *mta.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.records = append(j.records, r)
	return nil
}

func (j *journal) all() []*mta.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.records
}

// bench is a server with everything around it.
type bench struct {
	srv     *Server
	bus     *event.Local
	in      *inbox
	journal *journal
	set     *metric.Set
}

func newBench(t testing.TB, edit ...func(*Config, *Options)) *bench {
	t.Helper()
	b := &bench{bus: new(event.Local), in: new(inbox), journal: new(journal), set: metric.NewSet()}
	quiet := slog.New(slog.DiscardHandler)
	cfg := settings.New(func(c *Config) { c.Hostname, c.Source = "mx.test", "policy.lua:1" })
	o := Options{Bus: b.bus, Inbound: b.in, Recorder: b.journal, Metrics: b.set, Log: quiet, Product: "svc",
		Store: mta.NewStore(memory.New(), memory.New(), b.set, quiet)}
	for _, e := range edit {
		e(&cfg, &o)
	}
	var err error
	if b.srv, err = New(cfg, o); err != nil {
		t.Fatal(err)
	}
	return b
}

// addrConn is one end of a pipe that says where it comes from.
type addrConn struct {
	net.Conn
	local, remote net.Addr
}

func (c *addrConn) LocalAddr() net.Addr  { return c.local }
func (c *addrConn) RemoteAddr() net.Addr { return c.remote }

func tcpAddr(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }

const (
	trusted   = "127.0.0.1:40000"
	untrusted = "203.0.113.9:40000"
	here      = "192.0.2.25:25"
)

// client is the other end of a session. Replies are read as they come, so that neither end blocks the other.
type client struct {
	t     testing.TB
	conn  net.Conn
	lines chan string
	done  chan struct{} // the session ended
}

func (b *bench) dial(t testing.TB, ctx context.Context, peer string) *client {
	t.Helper()
	near, far := net.Pipe()
	c := &client{t: t, conn: near, lines: make(chan string, 10000), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		b.srv.ServeConn(ctx, &addrConn{far, tcpAddr(here), tcpAddr(peer)})
	}()
	go c.read(near)
	return c
}

func (c *client) read(r io.Reader) {
	defer close(c.lines)
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return
		}
		c.lines <- strings.TrimSuffix(line, "\r\n")
	}
}

// send writes lines with CRLF in one write.
func (c *client) send(lines ...string) {
	c.t.Helper()
	c.raw(strings.Join(lines, "\r\n") + "\r\n")
}

func (c *client) raw(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.conn, s); err != nil && err != io.ErrClosedPipe {
		c.t.Errorf("write: %v", err)
	}
}

// reply returns the last line of the next reply, "EOF" at the end.
func (c *client) reply() string {
	c.t.Helper()
	for {
		line, ok := <-c.lines
		if !ok {
			return "EOF"
		}
		if len(line) < 4 || line[3] != '-' {
			return line
		}
	}
}

func (c *client) want(prefixes ...string) {
	c.t.Helper()
	for _, p := range prefixes {
		if got := c.reply(); !strings.HasPrefix(got, p) {
			c.t.Fatalf("got %q, want %q", got, p)
		}
	}
}

// ask sends one line and wants one reply.
func (c *client) ask(line, prefix string) {
	c.t.Helper()
	c.send(line)
	if got := c.reply(); !strings.HasPrefix(got, prefix) {
		c.t.Fatalf("%s: got %q, want %q", line, got, prefix)
	}
}

// close ends the connection and awaits the session.
func (c *client) close() {
	_ = c.conn.Close()
	<-c.done
}

func content(t testing.TB, m *mta.Message) string {
	t.Helper()
	data, err := m.Data(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// bare turns trace headers off.
func bare(c *Config, _ *Options) {
	c.TraceHeaders.ReceivedHeader, c.TraceHeaders.SupplementalHeader = false, false
}

const second = time.Second
