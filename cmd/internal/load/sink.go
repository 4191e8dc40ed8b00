package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Sink is an SMTP server that notes every message in a ledger. Set its fields before Run.
type Sink struct {
	// Ledger is where arrivals are noted.
	Ledger *Ledger
	// Latency delays every reply to the end of data.
	Latency time.Duration

	listener net.Listener
	mu       sync.Mutex
	conns    map[net.Conn]struct{}
	sessions atomic.Int64
	ending   bool
}

// Listen binds addr.
func (s *Sink) Listen(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	s.listener = l
	return nil
}

// Addr returns the bound address.
func (s *Sink) Addr() string { return s.listener.Addr().String() }

// Sessions returns how many connections were accepted.
func (s *Sink) Sessions() int { return int(s.sessions.Load()) }

// Run serves until ctx ends and returns after the last session.
func (s *Sink) Run(ctx context.Context) error {
	s.conns = make(map[net.Conn]struct{})
	stop := context.AfterFunc(ctx, s.closeAll)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		c, err := s.listener.Accept()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("sink: %w", err)
		}
		if !s.add(c) {
			_ = c.Close()
			return nil
		}
		s.sessions.Add(1)
		wg.Go(func() {
			defer s.remove(c)
			(&sinkSession{sink: s, conn: c, r: bufio.NewReaderSize(c, 128<<10), w: bufio.NewWriterSize(c, 4096)}).serve()
		})
	}
}

func (s *Sink) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Sink) remove(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

func (s *Sink) closeAll() {
	_ = s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	for c := range s.conns {
		_ = c.Close()
	}
}

// sinkSession is one connection to the sink.
type sinkSession struct {
	sink *Sink
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
	rcpt []int // numbers of the accepted recipients
}

func (s *sinkSession) serve() {
	s.reply("220 sink.example ESMTP")
	for {
		if s.r.Buffered() == 0 && s.w.Flush() != nil {
			return
		}
		line, err := s.r.ReadSlice('\n')
		if err != nil {
			return
		}
		if !s.command(bytes.TrimRight(line, "\r\n")) {
			_ = s.w.Flush()
			return
		}
	}
}

func (s *sinkSession) reply(text string) {
	_, _ = s.w.WriteString(text)
	_, _ = s.w.WriteString("\r\n")
}

// command obeys one line and reports whether the session goes on.
func (s *sinkSession) command(line []byte) bool {
	switch {
	case hasVerb(line, "MAIL"):
		s.rcpt = s.rcpt[:0]
		s.reply("250 2.1.0 ok")
	case hasVerb(line, "RCPT"):
		s.recipient(line)
	case hasVerb(line, "DATA"):
		return s.data()
	case hasVerb(line, "EHLO"):
		s.reply("250-sink.example\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE 104857600")
	case hasVerb(line, "HELO"), hasVerb(line, "RSET"), hasVerb(line, "NOOP"):
		s.rcpt = s.rcpt[:0]
		s.reply("250 2.0.0 ok")
	case hasVerb(line, "QUIT"):
		s.reply("221 2.0.0 bye")
		return false
	default:
		s.reply("502 5.5.1 unknown command")
	}
	return true
}

func hasVerb(line []byte, verb string) bool {
	return len(line) >= 4 && bytes.EqualFold(line[:4], []byte(verb))
}

// recipient reads the number from "RCPT TO:<u123@domain>".
func (s *sinkSession) recipient(line []byte) {
	id, ok := number(line, "<u", '@')
	if !ok || id >= s.sink.Ledger.Len() {
		s.sink.Ledger.foreign.Add(1)
		s.reply("550 5.1.1 no such user")
		return
	}
	switch l := s.sink.Ledger; l.Fate(id) {
	case Reject:
		l.rejected[id].Add(1)
		s.reply("550 5.1.1 no such user")
		return
	case TempFailRcpt:
		if l.refuse(id) {
			s.reply("451 4.2.0 try later")
			return
		}
	}
	s.rcpt = append(s.rcpt, id)
	s.reply("250 2.1.5 ok")
}

// number returns the decimal between prefix and end.
func number(b []byte, prefix string, end byte) (int, bool) {
	i := bytes.Index(b, []byte(prefix))
	if i < 0 {
		return 0, false
	}
	b = b[i+len(prefix):]
	j := bytes.IndexByte(b, end)
	if j <= 0 || j > 18 {
		return 0, false
	}
	n, err := strconv.Atoi(string(b[:j]))
	return n, err == nil && n >= 0
}

func (s *sinkSession) data() bool {
	if len(s.rcpt) == 0 {
		s.reply("503 5.5.1 no recipient")
		return true
	}
	s.reply("354 go ahead")
	if s.w.Flush() != nil {
		return false
	}
	id, sum, ok, err := s.body()
	if err != nil {
		return false
	}
	l := s.sink.Ledger
	if s.sink.Latency > 0 {
		time.Sleep(s.sink.Latency)
	}
	if !ok || id >= l.Len() {
		l.foreign.Add(1)
		s.reply("550 5.6.0 not a message of this run")
		return true
	}
	if !l.intact(id, sum) {
		s.reply("550 5.6.0 not what was sent")
		return true
	}
	if l.Fate(id) == TempFailData && l.refuse(id) {
		s.reply("451 4.3.0 try later")
		return true
	}
	for _, r := range s.rcpt {
		if r != id {
			l.foreign.Add(1)
		}
		l.Arrived(r)
	}
	s.rcpt = s.rcpt[:0]
	s.reply("250 2.0.0 queued")
	return true
}

var (
	endOfData = []byte("\r\n.\r\n")
	idField   = IDField + ": "
)

// content is what body finds out, piece by piece.
type content struct {
	id    int
	found bool   // the line with the number
	sum   uint32 // of what follows it
}

// body reads to the end of data and returns the number in the header of the message and the checksum of what follows that
// line. It looks at the buffer in large pieces: what was scanned is discarded but for the last bytes, which may begin the
// end mark.
func (s *sinkSession) body() (id int, sum uint32, ok bool, err error) {
	var c content
	for first := true; ; first = false {
		if _, err = s.r.Peek(1); err != nil {
			return 0, 0, false, err
		}
		b, _ := s.r.Peek(s.r.Buffered())
		if first && bytes.HasPrefix(b, endOfData[2:]) {
			_, err = s.r.Discard(len(endOfData) - 2) // no content at all
			return 0, 0, false, err
		}
		if !c.found {
			if n := c.header(b); n > 0 {
				_, _ = s.r.Discard(n)
				continue
			}
		}
		if i := bytes.Index(b, endOfData); i >= 0 {
			c.add(b[:i+2])
			_, err = s.r.Discard(i + len(endOfData))
			return c.id, c.sum, c.found, err
		}
		if keep := len(endOfData) - 1; len(b) > keep && (c.found || len(b) > s.r.Size()/2) {
			c.add(b[:len(b)-keep])
			_, _ = s.r.Discard(len(b) - keep)
			b = b[len(b)-keep:]
		}
		// Wait for more than what is left.
		if _, err = s.r.Peek(len(b) + 1); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return 0, 0, false, err
		}
	}
}

// header looks for the line with the number and returns how many bytes to skip to get behind it.
func (c *content) header(b []byte) int {
	i := bytes.Index(b, []byte(idField))
	if i < 0 {
		return 0
	}
	n := bytes.IndexByte(b[i:], '\n')
	if n < 0 {
		return 0
	}
	c.id, c.found = number(b[i:], idField, '\r')
	return i + n - 1 // the line end stays, for the end mark may follow
}

// add counts b in, once the number was found.
func (c *content) add(b []byte) {
	if c.found {
		c.sum = crc32.Update(c.sum, castagnoli, b)
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
