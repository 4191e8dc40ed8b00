package smtp

import (
	"bytes"
	"io"
	"strconv"
	"strings"
)

// Writer writes lines, replies and content. What is written waits in a buffer until [Writer.Flush], which makes one
// write, or until the buffer is full. Make one with [NewWriter]. The first error stays.
type Writer struct {
	dst  io.Writer
	buf  []byte
	size int
	err  error
}

const minWriter = 256

// NewWriter returns a writer to w that holds back up to size bytes (at least 256). The buffer begins small and grows.
func NewWriter(w io.Writer, size int) *Writer {
	return &Writer{dst: w, size: max(size, minWriter), buf: make([]byte, 0, minWriter)}
}

// Reset drops what is buffered and the error, and continues with dst. The buffer is kept.
func (w *Writer) Reset(dst io.Writer) {
	w.dst, w.buf, w.err = dst, w.buf[:0], nil
}

// Buffered returns how many bytes wait in the buffer.
func (w *Writer) Buffered() int { return len(w.buf) }

// Flush writes what is buffered with one call.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if len(w.buf) > 0 {
		_, w.err = w.dst.Write(w.buf)
		w.buf = w.buf[:0]
	}
	return w.err
}

// Write adds p as it is. It makes a Writer an io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	n := len(p)
	if len(w.buf)+n > w.size {
		if err := w.Flush(); err != nil {
			return 0, err
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	if n >= w.size {
		_, w.err = w.dst.Write(p)
		return n, w.err
	}
	w.buf = append(w.buf, p...)
	return n, nil
}

// room makes sure that n more bytes fit, n being small.
func (w *Writer) room(n int) {
	if len(w.buf) > 0 && len(w.buf)+n > w.size {
		_ = w.Flush() // the error stays in w
	}
}

// WriteLine adds line and CRLF. A line with CR, LF or NUL is not written and gives [ErrUnsafeLine] (W3).
func (w *Writer) WriteLine(line string) error {
	if strings.ContainsAny(line, "\r\n\x00") {
		return ErrUnsafeLine
	}
	w.room(len(line) + 2)
	w.buf = append(append(w.buf, line...), '\r', '\n')
	return w.err
}

// WriteReply adds a reply (RFC 5321 section 4.2.1): "250-..." for all lines but the last. Control characters in lines
// become spaces (W3). Without lines the code stands alone with a space.
func (w *Writer) WriteReply(code int, lines ...string) error {
	if len(lines) == 0 {
		w.replyLine(code, ' ', "")
	}
	for i, line := range lines {
		sep := byte('-')
		if i == len(lines)-1 {
			sep = ' '
		}
		w.replyLine(code, sep, line)
	}
	return w.err
}

func (w *Writer) replyLine(code int, sep byte, text string) {
	w.room(len(text) + 8)
	b := strconv.AppendInt(w.buf, int64(code), 10)
	b = append(b, sep)
	from := len(b)
	b = append(b, text...)
	for i, c := range b[from:] {
		if c < ' ' || c == 0x7f {
			b[from+i] = ' '
		}
	}
	w.buf = append(b, '\r', '\n')
}

// WriteData adds content and the end of content: leading dots are doubled (RFC 5321 section 4.5.2) and a missing last
// CRLF is added (flows SC-18). Lone CR and LF leave as CRLF (W3).
func (w *Writer) WriteData(body []byte) error {
	clean, dots := survey(body)
	run, pos := 0, 0
	if clean && !dots {
		pos = bytes.LastIndexByte(body, '\n') + 1
	}
	for pos < len(body) {
		if body[pos] == '.' {
			w.Write(body[run:pos]) //nolint:errcheck // the error stays in w
			w.buf = append(w.buf, '.')
			run = pos
		}
		n := bytes.IndexByte(body[pos:], '\n') + 1
		if n == 0 {
			break
		}
		line := body[pos : pos+n]
		if !clean && (n < 2 || bytes.IndexByte(line, '\r') != n-2) {
			w.Write(body[run:pos]) //nolint:errcheck // the error stays in w
			w.fixLine(line)
			run = pos + n
		}
		pos += n
		if w.err != nil {
			return w.err
		}
	}
	if rest := body[pos:]; len(rest) > 0 {
		w.Write(body[run:pos]) //nolint:errcheck // the error stays in w
		w.fixLine(rest)
	} else {
		w.Write(body[run:]) //nolint:errcheck // the error stays in w
	}
	w.room(3)
	w.buf = append(w.buf, ".\r\n"...)
	return w.err
}

// WritePlain adds content that is known to need no care, and the end of content: every CR and LF is part of a CRLF, no
// line begins with a dot, and the last line is whole ([DataInfo.Plain]). Empty content is fine too.
func (w *Writer) WritePlain(body []byte) error {
	w.Write(body) //nolint:errcheck // the error stays in w
	w.room(3)
	w.buf = append(w.buf, ".\r\n"...)
	return w.err
}

// survey reports whether every CR and LF of body is part of a CRLF, and, if so, whether a line begins with a dot.
func survey(body []byte) (clean, dots bool) {
	lines := 0
	for pos := 0; pos < len(body); lines++ {
		dots = dots || body[pos] == '.'
		n := bytes.IndexByte(body[pos:], '\n')
		if n < 0 {
			break
		}
		if pos += n + 1; n == 0 || body[pos-2] != '\r' {
			return false, true
		}
	}
	return bytes.Count(body, crlf[:1]) == lines, dots // with a CR before each LF, more CRs are lone ones
}

// fixLine writes a line that has no LF, no CR before it, or more CRs, as one or more lines that end in CRLF. Its first
// dot is already doubled.
func (w *Writer) fixLine(line []byte) {
	for first := true; len(line) > 0; first = false {
		if !first && line[0] == '.' {
			w.Write(line[:1]) //nolint:errcheck // the error stays in w
		}
		i := bytes.IndexAny(line, "\r\n")
		if i < 0 {
			i = len(line)
		}
		w.Write(line[:i]) //nolint:errcheck // the error stays in w
		w.Write(crlf)     //nolint:errcheck // the error stays in w
		line = line[i:]
		if len(line) > 1 && line[0] == '\r' && line[1] == '\n' {
			line = line[1:]
		}
		if len(line) > 0 {
			line = line[1:]
		}
	}
}
