package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	// MaxLine is the longest line, in bytes, that a Reader gives.
	MaxLine = 256 << 20
	// maxWindow bounds the memory that the header of a stream can claim.
	maxWindow = 128 << 20
)

// ErrLongLine reports a line above [MaxLine].
var ErrLongLine = errors.New("jsonl: line is too long")

// Reader iterates over the lines of one segment. It belongs to one goroutine.
type Reader struct {
	dec       *zstd.Decoder
	buf       *bufio.Reader
	line      []byte
	truncated bool
}

// NewReader reads the segment in r. The caller calls [Reader.Close].
func NewReader(r io.Reader) (*Reader, error) {
	dec, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("read segment: %w", err)
	}
	return &Reader{dec: dec, buf: bufio.NewReaderSize(dec, 64<<10)}, nil
}

// Next returns the next line without its line feed; it is valid until the next call. At the end it returns [io.EOF]:
// also at the end of a stream that was not finished, where bytes after the last line feed are left out (J3) and
// [Reader.Truncated] is true. Damage gives another error.
func (r *Reader) Next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.buf.ReadSlice('\n')
		if err == nil && len(r.line) == 0 {
			return part[:len(part)-1], nil
		}
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(r.line, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull):
			if len(r.line) > MaxLine {
				return nil, ErrLongLine
			}
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
			r.truncated = r.truncated || len(r.line) > 0 || errors.Is(err, io.ErrUnexpectedEOF)
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("read segment: %w", err)
		}
	}
}

// Truncated reports, after the end, whether the segment is unfinished: still open, or cut off by a crash.
func (r *Reader) Truncated() bool { return r.truncated }

// Close frees the memory of the reader. It does not close what the reader reads.
func (r *Reader) Close() { r.dec.Close() }

// File iterates over the lines of the segment at path. A line is valid until the next step. An error ends the
// iteration and names the path; an unfinished end is none.
func File(path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		readFile(path, yield)
	}
}

// readFile yields the lines of one segment and reports whether the iteration may go on.
func readFile(path string, yield func([]byte, error) bool) bool {
	f, err := os.Open(path)
	if err != nil {
		yield(nil, fmt.Errorf("open segment: %w", err))
		return false
	}
	defer f.Close()
	r, err := NewReader(f)
	if err != nil {
		yield(nil, fmt.Errorf("%s: %w", path, err))
		return false
	}
	defer r.Close()
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			return true
		}
		if err != nil {
			yield(nil, fmt.Errorf("%s: %w", path, err))
			return false
		}
		if !yield(line, nil) {
			return false
		}
	}
}

// Dir iterates over the lines of all segments in dir in the order of their names, which is the order of time. Files
// that start with "." and directories are passed over. It ends at the first error, as [File] does.
func Dir(dir string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		names, err := Segments(dir)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, name := range names {
			if !readFile(filepath.Join(dir, name), yield) {
				return
			}
		}
	}
}

// Segments returns the names of the segments in dir in order of time.
func Segments(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
