package smtp

import (
	"bytes"
	"io"
)

// MaxDiscard is how many bytes of one overlong line are read and dropped before [ErrLineEndless].
const MaxDiscard = 64 << 10

const (
	minReader    = 256
	maxNoReads   = 100 // reads without data and without error before io.ErrNoProgress
	skipRoom     = 512 // room behind a kept prefix while the rest of a line is dropped
	defaultChunk = 64 << 10
)

// Reader reads lines, replies and content. It buffers; its buffer begins small and grows up to the longest line that
// was allowed. Make one with [NewReader].
type Reader struct {
	src  io.Reader
	buf  []byte
	r, w int
	err  error // error that came along with data
}

// NewReader returns a reader of r whose buffer begins with size bytes (at least 256).
func NewReader(r io.Reader, size int) *Reader {
	return &Reader{src: r, buf: make([]byte, max(size, minReader))}
}

// Reset drops what is buffered and continues with src. The buffer is kept.
func (r *Reader) Reset(src io.Reader) {
	r.src, r.r, r.w, r.err = src, 0, 0, nil
}

// Buffered returns how many bytes wait in the buffer.
func (r *Reader) Buffered() int { return r.w - r.r }

// Discard drops what is buffered, as both sides must at STARTTLS (RFC 3207 section 4.2), and returns how much it was.
func (r *Reader) Discard() int {
	n := r.w - r.r
	r.r, r.w = 0, 0
	return n
}

// Shrink gives the memory of the buffer back when it is empty and has grown beyond size bytes, so that idle connections
// stay small.
func (r *Reader) Shrink(size int) {
	if size = max(size, minReader); r.r == r.w && len(r.buf) > size {
		r.r, r.w, r.buf = 0, 0, make([]byte, size)
	}
}

// HasLine reports whether a whole line waits in the buffer, so that ReadLine will not block.
func (r *Reader) HasLine() bool {
	return r.r < r.w && bytes.Contains(r.buf[r.r:r.w], crlf)
}

var crlf = []byte("\r\n")

// ReadLine returns the next line without its CRLF; the slice is valid until the next read. A line of more than max
// bytes gives [ErrLineTooLong] and its first max bytes, after it was read to its end; one that does not end gives
// [ErrLineEndless]. Only CRLF ends a line (RFC 5321 section 2.3.8): lone CR and LF are content. At the end of the
// stream it returns io.EOF, or io.ErrUnexpectedEOF within a line.
func (r *Reader) ReadLine(max int) ([]byte, error) {
	scan := r.r
	for {
		i := bytes.IndexByte(r.buf[scan:r.w], '\n')
		if i >= 0 {
			end := scan + i
			if end == r.r || r.buf[end-1] != '\r' {
				scan = end + 1
				continue
			}
			line := r.buf[r.r : end-1]
			r.r = end + 1
			if len(line) > max {
				return line[:max], ErrLineTooLong
			}
			return line, nil
		}
		have := r.w - r.r
		if have >= max+2 {
			return r.skipLine(max)
		}
		if err := r.fill(max + 2); err != nil {
			if err == io.EOF && have > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		scan = r.r + have
	}
}

// skipLine keeps the first max bytes of the line that begins at r.r and drops the rest up to CRLF.
func (r *Reader) skipLine(max int) ([]byte, error) {
	r.compact()
	if len(r.buf) < max+skipRoom {
		r.grow(max + skipRoom)
	}
	total := r.w
	lastCR := r.buf[r.w-1] == '\r'
	for total < MaxDiscard+max {
		r.r, r.w = max, max
		if err := r.read(); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		total += r.w - r.r
		chunk := r.buf[r.r:r.w]
		if lastCR && chunk[0] == '\n' {
			r.r++
			return r.buf[:max], ErrLineTooLong
		}
		if i := bytes.Index(chunk, crlf); i >= 0 {
			r.r += i + 2
			return r.buf[:max], ErrLineTooLong
		}
		lastCR = chunk[len(chunk)-1] == '\r'
	}
	return nil, ErrLineEndless
}

// ReadFull fills p, from the buffer first. It returns io.ErrUnexpectedEOF when the stream ends before.
func (r *Reader) ReadFull(p []byte) error {
	n := copy(p, r.buf[r.r:r.w])
	r.r += n
	for n < len(p) {
		k, err := r.readInto(p[n:])
		if err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		n += k
	}
	return nil
}

// fill reads more behind what is buffered and makes room for lines of limit bytes.
func (r *Reader) fill(limit int) error {
	if r.r == r.w {
		r.r, r.w = 0, 0
	}
	if r.w == len(r.buf) {
		r.compact()
	}
	if r.w == len(r.buf) {
		r.grow(min(2*len(r.buf), max(limit, len(r.buf)+minReader)))
	}
	return r.read()
}

func (r *Reader) compact() {
	if r.r > 0 {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
}

func (r *Reader) grow(size int) {
	buf := make([]byte, size)
	r.w = copy(buf, r.buf[r.r:r.w])
	r.r, r.buf = 0, buf
}

// read adds at least one byte behind r.w or returns an error.
func (r *Reader) read() error {
	n, err := r.readInto(r.buf[r.w:])
	r.w += n
	return err
}

// readInto reads at least one byte or returns an error. An error that comes along with data is kept for the next call;
// none is sticky beyond that, so that a caller may go on after a timeout.
func (r *Reader) readInto(p []byte) (int, error) {
	if err := r.err; err != nil {
		r.err = nil
		return 0, err
	}
	for range maxNoReads {
		n, err := r.src.Read(p)
		if n > 0 {
			r.err = err
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
	return 0, io.ErrNoProgress
}

// unread puts p before what is buffered. The buffer is empty when it is called.
func (r *Reader) unread(p []byte) {
	if len(p) > len(r.buf) {
		r.buf = make([]byte, len(p))
	}
	r.r, r.w = 0, copy(r.buf, p)
}
