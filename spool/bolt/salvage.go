package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"go.etcd.io/bbolt"

	"example.com/svc/spool"
)

// damaged checks the structure of the database file: every page of the tree is
// where it belongs and every key in order. It reads no values; their frames are
// checked when they are read.
func (s *Spool) damaged() (bool, error) {
	f, info, err := s.openRaw()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if info.Size() == 0 {
		return false, nil
	}
	db, err := openPages(f, info.Size())
	if err == nil {
		w := &walker{f: db, seen: make(map[uint64]bool)}
		err = w.buckets(func([]byte, leaf) error { return nil })
		if err == nil {
			err = w.problem
		}
	}
	if err != nil {
		s.opts.Log.Error("spool database is damaged, salvaging", "path", s.file, "error", err)
	}
	return err != nil, nil
}

func (s *Spool) openRaw() (*os.File, fs.FileInfo, error) {
	f, err := os.Open(s.file)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", s.file)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// salvage puts a new database with all records whose frames check out in the
// place of the damaged one, which stays beside it under another name.
func (s *Spool) salvage() error {
	f, info, err := s.openRaw()
	if err != nil {
		return err
	}
	fresh := s.file + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, f.Close())
	}
	r := &rescue{have: make(map[[16]byte]bool)}
	if err := errors.Join(r.run(f, info.Size(), fresh, s.opts.PageSize), f.Close()); err != nil {
		return err
	}
	old := s.file + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000")
	// The link keeps the old file while the new one takes its name in one step,
	// so that a crash at any point leaves one of them in place.
	if err := os.Link(s.file, old); err != nil {
		return fmt.Errorf("keep the damaged database: %w", err)
	}
	if err := os.Rename(fresh, s.file); err != nil {
		return err
	}
	if err := syncDir(s.dir); err != nil {
		return err
	}
	s.counts.salvaged.Store(r.saved)
	s.counts.lost.Store(r.lost)
	s.opts.Log.Warn("spool database salvaged", "path", s.file, "damaged", old,
		"records", r.saved, "from_loose_pages", r.loose, "unreadable_records", r.lost)
	return nil
}

// rescueBatch is how many bytes one transaction of a rescue collects.
const rescueBatch = 8 << 20

// rescue copies records into a new database.
type rescue struct {
	db                 *bbolt.DB
	pending            []rescued
	have               map[[16]byte]bool // values taken so far
	size               int
	saved, loose, lost uint64
}

type rescued struct{ bucket, key, value []byte }

func (r *rescue) run(f *os.File, size int64, path string, pageSize int) (err error) {
	r.db, err = bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout: lockTimeout, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, PageSize: pageSize,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.db.Close()) }()
	if err := makeBuckets(r.db); err != nil {
		return err
	}
	w := &walker{seen: make(map[uint64]bool)}
	w.f, err = openPages(f, size)
	switch {
	case err != nil:
		// Nothing tells the page size: take every leaf at every size.
		for n := 64 << 10; n >= 1024; n /= 2 {
			w.f = &dbFile{r: f, size: size, meta: meta{pageSize: n}}
			w.lost = []keyRange{{}}
			if err := r.loosePages(w); err != nil {
				return err
			}
		}
	default:
		if err := w.buckets(r.fromTree); err != nil {
			return err
		}
		if err := r.loosePages(w); err != nil {
			return err
		}
	}
	return r.flush()
}

// fromTree takes a record that the tree leads to.
func (r *rescue) fromTree(bucket []byte, l leaf) error {
	value, err := l.value()
	if err != nil || len(l.key) != 16 {
		r.lost++
		return nil
	}
	if bytes.Equal(bucket, bucketValues) {
		if _, err := spool.ParseFrame(value); err != nil {
			r.lost++
			return nil
		}
	}
	return r.add(bucket, l.key, value)
}

// loosePages takes records from leaves that no tree leads to, if their key lies
// in a range that was lost. Such a page may be an old version, so a removed value
// may come back (S2); that is better than losing one (S1).
func (r *rescue) loosePages(w *walker) error {
	if len(w.lost) == 0 {
		return nil
	}
	for n := uint64(2); n < uint64(w.f.size)/uint64(w.f.pageSize); n++ {
		p, err := w.f.read(n)
		if err != nil || p.kind() != kindLeaf {
			continue
		}
		if err := r.looseLeaves(w, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *rescue) looseLeaves(w *walker, p *page) error {
	for i := range p.count() {
		l, err := p.leaf(i)
		if err != nil || l.bucket || len(l.key) != 16 || !inRanges(w.lost, l.key) {
			continue
		}
		if r.have[[16]byte(l.key)] {
			continue
		}
		value, err := l.value()
		if err != nil {
			continue
		}
		if _, err := spool.ParseFrame(value); err != nil {
			continue
		}
		r.loose++
		if err := r.add(bucketValues, l.key, value); err != nil {
			return err
		}
	}
	return nil
}

func inRanges(ranges []keyRange, key []byte) bool {
	for _, r := range ranges {
		if r.contains(key) {
			return true
		}
	}
	return false
}

func (r *rescue) add(bucket, key, value []byte) error {
	r.saved++
	if bytes.Equal(bucket, bucketValues) {
		r.have[[16]byte(key)] = true
	}
	r.pending = append(r.pending, rescued{bucket, bytes.Clone(key), bytes.Clone(value)})
	r.size += len(value)
	if r.size < rescueBatch && len(r.pending) < 4*batchOps {
		return nil
	}
	return r.flush()
}

func (r *rescue) flush() error {
	if len(r.pending) == 0 {
		return nil
	}
	err := r.db.Update(func(tx *bbolt.Tx) error {
		for _, p := range r.pending {
			if err := tx.Bucket(p.bucket).Put(p.key, p.value); err != nil {
				return err
			}
		}
		return nil
	})
	clear(r.pending)
	r.pending, r.size = r.pending[:0], 0
	return err
}
