package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// The database file, as far as checking and salvaging read it, in the byte order
// of the machine. A page begins with
//
//	0   8  its number
//	8   2  kind: 1 branch, 2 leaf, 4 meta, 16 free list
//	10  2  count of elements
//	12  4  how many pages follow that belong to it
//
// and goes on with its elements of 16 bytes each, then keys and values. An
// element of a branch is offset of the key (4, from the element), size of the key
// (4), number of the page below (8). One of a leaf is flags (4, 1 for a bucket),
// offset (4), size of the key (4), size of the value (4).
const (
	pageHeader  = 16
	elementSize = 16
	metaSize    = 64

	kindBranch = 1
	kindLeaf   = 2

	metaMagic   = 0xED0CDAED
	metaVersion = 2

	flagBucket   = 1
	bucketHeader = 16

	// maxDepth is more than any tree of 2^63 pages needs.
	maxDepth = 64
)

var order = binary.NativeEndian

var (
	errNoMeta    = errors.New("no valid meta page")
	errPage      = errors.New("damaged page")
	errNoBuckets = errors.New("buckets are missing")
)

// meta is what a meta page tells.
type meta struct {
	pageSize int
	root     uint64 // page of the root bucket
	pages    uint64 // number of pages in use
	tx       uint64 // transaction that wrote it
}

// parseMeta reads a meta page; ok is false when it is not valid.
func parseMeta(page []byte) (m meta, ok bool) {
	if len(page) < pageHeader+metaSize {
		return m, false
	}
	b := page[pageHeader : pageHeader+metaSize]
	sum := fnv.New64a()
	_, _ = sum.Write(b[:56]) // documented never to fail
	if order.Uint32(b) != metaMagic || order.Uint32(b[4:]) != metaVersion || order.Uint64(b[56:]) != sum.Sum64() {
		return m, false
	}
	m = meta{
		pageSize: int(order.Uint32(b[8:])),
		root:     order.Uint64(b[16:]),
		pages:    order.Uint64(b[40:]),
		tx:       order.Uint64(b[48:]),
	}
	return m, m.pageSize >= 1024 && m.pageSize <= 64<<10 && m.pageSize&(m.pageSize-1) == 0
}

// dbFile reads pages of a database file without mapping it.
type dbFile struct {
	r    io.ReaderAt
	size int64
	meta
}

// openPages finds the newer of the two meta pages.
func openPages(r io.ReaderAt, size int64) (*dbFile, error) {
	f := &dbFile{r: r, size: size}
	found := false
	try := func(at int64) {
		b := make([]byte, pageHeader+metaSize)
		if _, err := r.ReadAt(b, at); err != nil {
			return
		}
		if m, ok := parseMeta(b); ok && (!found || m.tx > f.tx) {
			f.meta, found = m, true
		}
	}
	try(0)
	for n := int64(1024); n <= 64<<10; n *= 2 {
		try(n) // the second meta page follows the first, whose size may be unknown
	}
	if !found {
		return nil, errNoMeta
	}
	return f, nil
}

// page is the first part of a page and where to find the rest.
type page struct {
	f     *dbFile
	at    int64  // offset in the file; unused when whole
	head  []byte // the first bytes
	size  int    // of the whole page
	whole bool   // head is all of it: a bucket inside a leaf
}

// read returns page n, which must be a branch or leaf. What it says about its
// size and elements is checked against the bounds of the file.
func (f *dbFile) read(n uint64) (*page, error) {
	if n < 2 || n >= uint64(f.size)/uint64(f.pageSize) {
		return nil, fmt.Errorf("%w %d: out of the file", errPage, n)
	}
	p := &page{f: f, at: int64(n) * int64(f.pageSize), head: make([]byte, f.pageSize)}
	if _, err := f.r.ReadAt(p.head, p.at); err != nil {
		return nil, fmt.Errorf("%w %d: %w", errPage, n, err)
	}
	span := (int64(p.overflow()) + 1) * int64(f.pageSize)
	if order.Uint64(p.head) != n || p.at+span > f.size {
		return nil, fmt.Errorf("%w %d: wrong number or size", errPage, n)
	}
	p.size = int(span)
	return p, p.check(n)
}

// inlinePage returns the page inside the value of a small bucket.
func inlinePage(b []byte) (*page, error) {
	if len(b) < pageHeader {
		return nil, fmt.Errorf("%w: short bucket", errPage)
	}
	p := &page{head: b, size: len(b), whole: true}
	return p, p.check(0)
}

func (p *page) check(n uint64) error {
	if k := p.kind(); k != kindBranch && k != kindLeaf {
		return fmt.Errorf("%w %d: kind %d", errPage, n, k)
	}
	if pageHeader+p.count()*elementSize > p.size {
		return fmt.Errorf("%w %d: too many elements", errPage, n)
	}
	return nil
}

func (p *page) kind() int        { return int(order.Uint16(p.head[8:])) }
func (p *page) count() int       { return int(order.Uint16(p.head[10:])) }
func (p *page) overflow() uint32 { return order.Uint32(p.head[12:]) }

// bytes returns n bytes at offset off of the page.
func (p *page) bytes(off, n int) ([]byte, error) {
	if off < 0 || n < 0 || off > p.size || n > p.size-off {
		return nil, fmt.Errorf("%w: element outside of its page", errPage)
	}
	if off+n <= len(p.head) {
		return p.head[off : off+n], nil
	}
	b := make([]byte, n)
	if _, err := p.f.r.ReadAt(b, p.at+int64(off)); err != nil {
		return nil, fmt.Errorf("%w: %w", errPage, err)
	}
	return b, nil
}

// child returns the key and page of branch element i.
func (p *page) child(i int) (key []byte, n uint64, err error) {
	at := pageHeader + i*elementSize
	e, err := p.bytes(at, elementSize)
	if err != nil {
		return nil, 0, err
	}
	n = order.Uint64(e[8:])
	key, err = p.bytes(at+int(order.Uint32(e)), int(order.Uint32(e[4:])))
	return key, n, err
}

// leaf is an element of a leaf page; its value is read on demand.
type leaf struct {
	p         *page
	key       []byte
	bucket    bool
	off, size int
}

func (l *leaf) value() ([]byte, error) { return l.p.bytes(l.off, l.size) }

func (p *page) leaf(i int) (leaf, error) {
	at := pageHeader + i*elementSize
	e, err := p.bytes(at, elementSize)
	if err != nil {
		return leaf{}, err
	}
	keyAt, keySize := at+int(order.Uint32(e[4:])), int(order.Uint32(e[8:]))
	l := leaf{p: p, bucket: order.Uint32(e)&flagBucket != 0, off: keyAt + keySize, size: int(order.Uint32(e[12:]))}
	if l.key, err = p.bytes(keyAt, keySize); err != nil {
		return leaf{}, err
	}
	if l.size < 0 || l.size > p.size-l.off {
		return leaf{}, fmt.Errorf("%w: value outside of its page", errPage)
	}
	return l, nil
}
