package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// IDField is the header field that carries the number of a message.
const IDField = "X-Load-Id"

// Generator sends the messages of a ledger over SMTP. Set its fields before Run.
type Generator struct {
	// Ledger numbers the messages; First and Count say which of them to send.
	Ledger       *Ledger
	First, Count int
	// Target is the server's host:port.
	Target string
	// Sender is the envelope sender; the domains of recipients come from Domain.
	Sender string
	// Domain returns the recipient domain of a message.
	Domain func(id int) string
	// Sizes are the message sizes in bytes, header included, used in turn.
	Sizes []int
	// Concurrency is the number of connections, PerSession the number of messages on each before a new one is opened.
	Concurrency, PerSession int
	// Timeout bounds every reply.
	Timeout time.Duration
	// Retry makes messages whose session broke, or that got a 4xx reply, be sent again until ctx ends.
	Retry bool

	next    atomic.Int64
	refused atomic.Int64
	errs    atomic.Int64
	lastErr atomic.Value
}

// Domains returns a Domain function over n names, weighted so that name k gets a share in proportion to
// 1/(k+1)^skew. A skew of 0 gives equal shares.
func Domains(n int, skew float64) func(id int) string {
	names := make([]string, n)
	bounds := make([]float64, n)
	sum := 0.0
	for i := range names {
		names[i] = "d" + strconv.Itoa(i) + ".load.example"
		sum += math.Pow(float64(i+1), -skew)
		bounds[i] = sum
	}
	return func(id int) string {
		if skew == 0 {
			return names[id%n]
		}
		x := float64(uint32(id)*2654435761>>8&0xffffff) / 0x1000000 * sum
		lo, hi := 0, n-1
		for lo < hi {
			mid := (lo + hi) / 2
			if bounds[mid] > x {
				hi = mid
			} else {
				lo = mid + 1
			}
		}
		return names[lo]
	}
}

// Refused returns how many messages the server refused for good.
func (g *Generator) Refused() int { return int(g.refused.Load()) }

// Errors returns how many sessions broke or could not be opened, and the last cause.
func (g *Generator) Errors() (int, error) {
	err, _ := g.lastErr.Load().(error)
	return int(g.errs.Load()), err
}

// Run sends all messages and returns when every one was answered, or when ctx ends. Without Retry the first broken
// session is returned as an error.
func (g *Generator) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.expect()
	var wg sync.WaitGroup
	for range max(g.Concurrency, 1) {
		wg.Go(func() {
			if err := g.worker(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// worker sends messages over one connection after the other.
func (g *Generator) worker(ctx context.Context) error {
	pending := -1 // a message that has to be sent again
	for ctx.Err() == nil {
		if pending < 0 {
			if pending = g.take(); pending < 0 {
				return nil
			}
		}
		var err error
		pending, err = g.session(ctx, pending)
		if err == nil || ctx.Err() != nil {
			continue
		}
		g.errs.Add(1)
		g.lastErr.Store(fmt.Errorf("generator: %w", err))
		if !g.Retry {
			return fmt.Errorf("generator: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

func (g *Generator) take() int {
	n := int(g.next.Add(1)) - 1
	if n >= g.Count {
		return -1
	}
	return g.First + n
}

// genSession is one connection to the server.
type genSession struct {
	g    *Generator
	conn net.Conn
	r    *bufio.Reader
	cmd  []byte
	body [][]byte // a template for each size
	off  int      // of the number in a template
}

// session opens a connection and sends id and further messages over it. It returns the number that was not answered,
// or -1.
func (g *Generator) session(ctx context.Context, id int) (int, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", g.Target)
	if err != nil {
		return id, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	s := &genSession{g: g, conn: conn, r: bufio.NewReaderSize(conn, 4096)}
	s.body, s.off = g.templates()
	if err := s.hello(); err != nil {
		return id, err
	}
	for n := 0; id >= 0 && n < max(g.PerSession, 1); n++ {
		again, err := s.send(id)
		if err != nil {
			return id, err
		}
		if again {
			if !g.Retry {
				return -1, errors.New("temporary refusal")
			}
			return id, errors.New("temporary refusal")
		}
		if n+1 < g.PerSession {
			id = g.take()
		} else {
			id = -1
		}
	}
	_, _ = conn.Write([]byte("QUIT\r\n"))
	_, _, _ = s.readReply()
	return id, nil
}

const idDigits = 12

// expect tells the ledger what the contents add up to.
func (g *Generator) expect() {
	bodies, off := g.templates()
	sums := make([]uint32, len(bodies))
	for i, b := range bodies {
		sums[i] = crc32.Checksum(b[off+idDigits:len(b)-len(".\r\n")], castagnoli)
	}
	first, last := g.First, g.First+g.Count
	g.Ledger.Expect(func(id int) (uint32, bool) { return sums[id%len(sums)], id >= first && id < last })
}

// templates builds a message of each size; the number is written in place at off.
func (g *Generator) templates() (bodies [][]byte, off int) {
	head := "From: <" + g.Sender + ">\r\nTo: <someone@load.example>\r\nSubject: load\r\n" +
		"Date: Thu, 01 Jan 2026 00:00:00 +0000\r\nMessage-ID: <load@load.example>\r\n" + IDField + ": "
	off = len(head)
	head += strings.Repeat("0", idDigits) + "\r\n\r\n"
	const line = "The quick brown fox jumps over the lazy dog and runs through the field.\r\n"
	for _, size := range g.Sizes {
		b := make([]byte, 0, size+len(line)+8)
		b = append(b, head...)
		for len(b) < size-len(line) {
			b = append(b, line...)
		}
		if rest := size - len(b) - 2; rest > 0 {
			b = append(b, bytes.Repeat([]byte("x"), rest)...)
			b = append(b, "\r\n"...)
		}
		bodies = append(bodies, append(b, ".\r\n"...))
	}
	return bodies, off
}

func (s *genSession) hello() error {
	if err := s.expect(220); err != nil {
		return err
	}
	if _, err := s.conn.Write([]byte("EHLO load.example\r\n")); err != nil {
		return err
	}
	return s.expect(250)
}

func (s *genSession) expect(code int) error {
	got, text, err := s.readReply()
	if err == nil && got != code {
		err = fmt.Errorf("got %d %s, want %d", got, text, code)
	}
	return err
}

// readReply reads one reply and returns its code and last line.
func (s *genSession) readReply() (int, string, error) {
	if s.g.Timeout > 0 {
		if err := s.conn.SetReadDeadline(time.Now().Add(s.g.Timeout)); err != nil {
			return 0, "", err
		}
	}
	for {
		line, err := s.r.ReadSlice('\n')
		if err != nil {
			return 0, "", err
		}
		if len(line) < 4 {
			return 0, "", fmt.Errorf("short reply %q", line)
		}
		if line[3] == '-' {
			continue
		}
		code := int(line[0]-'0')*100 + int(line[1]-'0')*10 + int(line[2]-'0')
		if code/100 == 2 || code/100 == 3 {
			return code, "", nil
		}
		return code, string(bytes.TrimSpace(line[4:])), nil
	}
}

// send carries out one transaction in two writes and reports whether it has to be tried again.
func (s *genSession) send(id int) (again bool, err error) {
	b := append(s.cmd[:0], "MAIL FROM:<"...)
	b = append(b, s.g.Sender...)
	b = append(b, ">\r\nRCPT TO:<u"...)
	b = strconv.AppendInt(b, int64(id), 10)
	b = append(b, '@')
	b = append(b, s.g.Domain(id)...)
	b = append(b, ">\r\nDATA\r\n"...)
	s.cmd = b
	if _, err := s.conn.Write(b); err != nil {
		return false, err
	}
	for _, want := range [3]int{250, 250, 354} {
		code, text, err := s.readReply()
		if err != nil {
			return false, err
		}
		if code != want {
			return false, fmt.Errorf("got %d %s, want %d", code, text, want)
		}
	}
	body := s.body[id%len(s.body)]
	writeNumber(body[s.off:s.off+idDigits], id)
	if _, err := s.conn.Write(body); err != nil {
		return false, err
	}
	code, text, err := s.readReply()
	switch {
	case err != nil:
		return false, err
	case code == 250:
		s.g.Ledger.Accepted(id)
	case code/100 == 4:
		s.g.lastErr.Store(fmt.Errorf("generator: %d %s", code, text))
		return true, nil
	default:
		s.g.refused.Add(1)
	}
	return false, nil
}

// writeNumber writes n in decimal with leading zeros over dst.
func writeNumber(dst []byte, n int) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}
