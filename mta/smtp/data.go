package smtp

import (
	"bytes"
	"io"
	"slices"

	"example.com/svc/mta"
)

// DataOptions bounds what [Reader.ReadData] keeps. The zero value has no limits and reads in pieces of 64 KiB.
type DataOptions struct {
	// MaxSize is the most bytes of content that are kept; 0 means no limit.
	MaxSize int64
	// MaxLine is the longest text line in bytes without its line end; 0 means no limit. Longer lines are kept and
	// reported.
	MaxLine int
	// Chunk is the most bytes asked for in one read; 0 means 64 KiB.
	Chunk int
}

// DataInfo says what was found in content.
type DataInfo struct {
	// Size is the length of the content after undoing the dot stuffing, also when it was not kept.
	Size int64
	// TooBig says that the content exceeded MaxSize; nothing of it is returned.
	TooBig bool
	// LineTooLong says that a text line exceeded MaxLine.
	LineTooLong bool
	// BareCR and BareLF say that there was a CR without LF, or an LF without CR.
	BareCR, BareLF bool
	// Has8bit says that a byte had its high bit set.
	Has8bit bool
	// Dots says that a dot was removed: a line of the content may begin with one.
	Dots bool
}

// Plain reports whether content that was returned can be sent on as it is: whole lines, none of which begins with a dot.
func (i *DataInfo) Plain() bool { return !i.TooBig && !i.BareCR && !i.BareLF && !i.Dots && i.Size > 0 }

// ReadData reads content up to its end and appends it to dst without the dot stuffing. Only CRLF "." CRLF ends content,
// the first CRLF being content (RFC 5321 section 4.1.1.4); only a dot after CRLF is undone (section 4.5.2). Content that
// is too big is read to its true end and not returned. Bytes behind the end stay buffered for the next line. On an error
// dst is returned unchanged; io.ErrUnexpectedEOF means that the stream ended before the content.
func (r *Reader) ReadData(dst []byte, o DataOptions) ([]byte, DataInfo, error) {
	if o.Chunk <= 0 {
		o.Chunk = defaultChunk
	}
	base := len(dst)
	s := dataScan{base: base, buf: dst, out: base, run: base, mark: base, scan: base, line: base, bol: true, o: o}
	if r.r < r.w {
		s.buf = append(s.buf, r.buf[r.r:r.w]...)
		r.r, r.w = 0, 0
	}
	for !s.step() {
		s.settle()
		if err := s.more(r); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return s.buf[:base], s.info, err
		}
	}
	r.unread(s.buf[s.scan+len(dotEnd):])
	s.settle()
	info := s.finish()
	if info.TooBig {
		return s.buf[:base], info, nil
	}
	return s.buf[:s.out], info, nil
}

const dotEnd = ".\r\n"

// growth is the least room that is added when the content does not fit.
const growth = 32 << 10

// dataScan is the state of one ReadData. buf holds, from base on: finished content up to out, then (after a gap that
// removed dots left) a run of content that is not yet moved, up to scan, then bytes that were not looked at.
type dataScan struct {
	buf  []byte
	base int
	out  int // end of the content in its final place
	run  int // begin of the run
	mark int // begin of what was not yet counted
	scan int // end of the run
	line int // begin of the text line; may lie before base after dropping
	bol  bool
	o    DataOptions
	info DataInfo

	crs, pairs int64
}

// step looks at what was read and reports whether the end was found, which then begins at scan.
func (s *dataScan) step() bool {
	for s.scan < len(s.buf) {
		if s.bol && s.buf[s.scan] == '.' {
			rest := s.buf[s.scan:]
			if len(rest) < len(dotEnd) && dotEnd[:len(rest)] == string(rest) {
				return false
			}
			if len(rest) >= len(dotEnd) && string(rest[:len(dotEnd)]) == dotEnd {
				return true
			}
			s.dropDot()
		}
		s.bol = false
		i := bytes.IndexByte(s.buf[s.scan:], '\n')
		if i < 0 {
			s.scan = len(s.buf)
			return false
		}
		s.lineEnd(s.scan + i)
	}
	return false
}

// dropDot undoes the stuffing of the dot at scan.
func (s *dataScan) dropDot() {
	s.info.Dots = true
	s.count()
	s.move()
	s.scan++
	s.run, s.mark, s.line = s.scan, s.scan, s.scan
}

// lineEnd handles the LF at index at.
func (s *dataScan) lineEnd(at int) {
	n := at - s.line
	if at > s.base && s.prev(at) == '\r' {
		s.pairs++
		s.bol = true
		n--
	} else {
		s.info.BareLF = true
	}
	if s.o.MaxLine > 0 && n > s.o.MaxLine {
		s.info.LineTooLong = true
	}
	s.scan = at + 1
	s.line = s.scan
}

// prev returns the byte of content before index at. Directly behind a removed dot there is none that could matter: the
// dot itself stood there.
func (s *dataScan) prev(at int) byte { return s.buf[at-1] }

// count adds up the bytes between mark and scan.
func (s *dataScan) count() {
	b := s.buf[s.mark:s.scan]
	s.crs += int64(bytes.Count(b, crlf[:1]))
	if !s.info.Has8bit {
		s.info.Has8bit = mta.HighBit(b)
	}
	s.info.Size += int64(len(b))
	s.mark = s.scan
}

// move puts the run in its final place.
func (s *dataScan) move() {
	if s.out != s.run {
		copy(s.buf[s.out:], s.buf[s.run:s.scan])
	}
	s.out += s.scan - s.run
	s.run = s.scan
}

// settle closes the gap before the bytes that were not looked at, and drops content that is too big.
func (s *dataScan) settle() {
	s.count()
	s.move()
	if s.o.MaxSize > 0 && s.info.Size > s.o.MaxSize {
		s.info.TooBig = true
		if s.out > s.base {
			s.buf[s.base] = s.buf[s.out-1] // a CR here may meet its LF in the next read
			s.out = s.base + 1
		}
	}
	if gap := s.scan - s.out; gap > 0 {
		n := copy(s.buf[s.out:], s.buf[s.scan:])
		s.buf = s.buf[:s.out+n]
		s.line -= gap
		s.scan, s.run, s.mark = s.out, s.out, s.out
	}
}

// more reads the next piece behind what is there.
func (s *dataScan) more(r *Reader) error {
	n := len(s.buf)
	if cap(s.buf)-n < min(s.o.Chunk, 4096) {
		s.buf = slices.Grow(s.buf, max(min(s.o.Chunk, growth), min(n, 16<<20)))
	}
	room := s.buf[n:cap(s.buf)]
	if len(room) > s.o.Chunk {
		room = room[:s.o.Chunk]
	}
	k, err := r.readInto(room)
	s.buf = s.buf[:n+k]
	return err
}

func (s *dataScan) finish() DataInfo {
	s.info.BareCR = s.crs > s.pairs
	return s.info
}
