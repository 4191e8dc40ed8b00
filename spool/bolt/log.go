package bolt

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	// logSegment is the size in bytes after which the log goes on in another
	// file. A batch larger than that gets a file of its own.
	logSegment = 8 << 20
	// logBytes is how much the log holds before its oldest records move to the
	// database, logRecords how many.
	logBytes   = 256 << 20
	logRecords = 32 << 10
	// logSpare is how many files are kept for reuse.
	logSpare = 8
	// logMarks is how many removals wait before the database learns of them.
	logMarks = 1024
	// logStep is the least number of bytes moved at once when the log is full.
	logStep = 1 << 20
)

// place is where a record is in the log.
type place struct {
	seg  *segment
	off  int64
	size int
	// fresh says that the database cannot hold the key.
	fresh bool
}

// segment is one file of the log.
type segment struct {
	f         *os.File
	name      string
	salt, seq uint64
	end       int64 // where the next batch goes
	live      int   // records that are read from here
	marked    bool  // removals in it wait for the database
	retired   uint64
}

// log holds the records that the database does not have yet. The writer is the
// only one that changes it, under mu; others read under mu.
type log struct {
	mu    sync.RWMutex // taken after nothing and before nothing
	index map[[16]byte]place
	dead  map[[16]byte]struct{} // removed, and may be in the database

	segs   []*segment // oldest first; the last is written to
	spare  []*segment
	bytes  int64
	number uint64     // of the last batch
	seq    uint64     // of the last segment
	top    [16]byte   // no key above is in the database
	moving [][16]byte // records of the oldest segment that move to the database
	closed bool
	head   []byte
	vec    [][]byte
}

func (l *log) init() {
	l.index, l.dead = make(map[[16]byte]place), make(map[[16]byte]struct{})
}

var zeroBlock [logAlign]byte

// logBatch appends a batch to the log. When it returns nil the batch is on stable
// storage, unless NoSync is set (S1).
func (s *Spool) logBatch(batch []*op) error {
	l := &s.log
	count, size := 0, int64(0)
	for _, o := range batch {
		count += len(o.entries)
		for i := range o.entries {
			if e := &o.entries[i]; e.frame != nil {
				size += int64(e.size())
			}
		}
	}
	length := int64(logHeader+count*logEntry) + size
	seg, err := s.segmentFor(roundUp(length))
	if err != nil {
		return err
	}
	h := batchHead{
		salt: seg.salt, seq: seg.seq, number: l.number + 1, floor: l.segs[0].seq,
		length: length, count: count,
	}
	l.head = appendHead(l.head[:0], h, batch)
	l.vec = append(l.vec[:0], l.head)
	for _, o := range batch {
		for i := range o.entries {
			if e := &o.entries[i]; e.frame != nil {
				l.vec = append(l.vec, *e.frame)
				if len(e.rest) > 0 {
					l.vec = append(l.vec, e.rest)
				}
			}
		}
	}
	if pad := roundUp(length) - length; pad > 0 {
		l.vec = append(l.vec, zeroBlock[:pad])
	}
	err = writeVector(seg.f, l.vec, seg.end)
	clear(l.vec)
	if err != nil {
		return err
	}
	if !s.opts.NoSync {
		if err := s.opts.flush(seg.f); err != nil {
			return fmt.Errorf("flush %s: %w", seg.name, err)
		}
	}
	l.number++
	l.commit(seg, batch, seg.end+int64(len(l.head)))
	seg.end += roundUp(length)
	l.bytes += roundUp(length)
	return nil
}

// commit makes a written batch visible. Its frames begin at off.
func (l *log) commit(seg *segment, batch []*op, off int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range batch {
		for i := range o.entries {
			e := &o.entries[i]
			old, had := l.index[e.key]
			fresh := had && old.fresh || !had && bytes.Compare(e.key[:], l.top[:]) > 0
			if had {
				old.seg.live--
			}
			if e.frame == nil {
				delete(l.index, e.key)
				if !fresh {
					l.dead[e.key] = struct{}{}
					seg.marked = true
				}
				continue
			}
			l.index[e.key] = place{seg: seg, off: off, size: e.size(), fresh: fresh}
			delete(l.dead, e.key)
			seg.live++
			off += int64(e.size())
		}
	}
}

// segmentFor returns the segment that takes n more bytes.
func (s *Spool) segmentFor(n int64) (*segment, error) {
	l := &s.log
	if k := len(l.segs); k > 0 {
		if last := l.segs[k-1]; last.end == 0 || last.end+n <= logSegment {
			return last, nil
		}
	}
	seg, err := s.newSegment()
	if err != nil {
		return nil, err
	}
	l.segs = append(l.segs, seg)
	return seg, nil
}

// newSegment takes a spare file or makes one. A file is used again only after a
// batch was stored that says that its old content no longer counts.
func (s *Spool) newSegment() (*segment, error) {
	l := &s.log
	var seg *segment
	for i, spare := range l.spare {
		if spare.retired < l.number {
			seg = spare
			l.spare = slices.Delete(l.spare, i, i+1)
			break
		}
	}
	l.seq = max(l.seq+1, uint64(time.Now().UnixNano()))
	if seg == nil {
		name := filepath.Join(s.dir, fmt.Sprintf("%s%016x", logPrefix, l.seq))
		f, err := s.opts.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syncDir(s.dir); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		seg = &segment{f: f, name: name}
	}
	var salt [8]byte
	_, _ = rand.Read(salt[:]) // documented never to fail
	*seg = segment{f: seg.f, name: seg.name, seq: l.seq, salt: binary.BigEndian.Uint64(salt[:])}
	return seg, nil
}

// logPrefix begins the names of the files of the log.
const logPrefix = "log-"

// retire drops the oldest segments that nobody needs, but for the last.
func (s *Spool) retire() error {
	l := &s.log
	for len(l.segs) > 1 && l.segs[0].live == 0 && !l.segs[0].marked {
		old := l.segs[0]
		l.bytes -= old.end
		l.segs = slices.Delete(l.segs, 0, 1)
		l.moving = nil
		old.retired = l.number
		if len(l.spare) < logSpare && old.end <= 2*logSegment {
			l.spare = append(l.spare, old)
			continue
		}
		// What follows is newer, so that a crash here brings nothing back.
		l.mu.Lock() // waits for readers of the file
		err := errors.Join(old.f.Close(), os.Remove(old.name))
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// lookup reads the record of key from the log. found is false when the log does
// not have it; gone says that it was removed.
func (l *log) lookup(key [16]byte) (raw []byte, found, gone bool, err error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if p, ok := l.index[key]; ok {
		raw, err = p.read()
		return raw, true, false, err
	}
	_, gone = l.dead[key]
	return nil, false, gone, nil
}

func (p place) read() ([]byte, error) {
	raw := make([]byte, p.size)
	if _, err := p.seg.f.ReadAt(raw, p.off); err != nil {
		return nil, fmt.Errorf("read the log of the spool: %w", err)
	}
	return raw, nil
}

// keys returns the keys in the log, sorted.
func (l *log) keys() [][16]byte {
	l.mu.RLock()
	keys := make([][16]byte, 0, len(l.index))
	for k := range l.index {
		keys = append(keys, k)
	}
	l.mu.RUnlock()
	slices.SortFunc(keys, compareKeys)
	return keys
}

func compareKeys(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }

// covers reports whether the log has a newer state of key than the database.
func (l *log) covers(key [16]byte) (in, gone bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	_, in = l.index[key]
	_, gone = l.dead[key]
	return in, gone
}
