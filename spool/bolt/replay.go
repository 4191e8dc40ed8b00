package bolt

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"example.com/svc/spool"
)

// image is what a file of the log holds.
type image struct {
	f       *os.File
	name    string
	size    int64
	seq     uint64
	batches []int64 // where they begin
	last    batchHead
	damage  int // batches that could not be read, at least
}

// replay moves what is in the log to the database and removes the log.
func (s *Spool) replay() error {
	images, err := s.openLog()
	defer func() {
		for _, m := range images {
			_ = m.f.Close() // was only read
		}
	}()
	if err != nil {
		return err
	}
	if len(images) > 0 {
		if err := s.replayImages(images); err != nil {
			return fmt.Errorf("replay the log: %w", err)
		}
		for _, m := range images { // the oldest first: a crash brings nothing back
			if err := os.Remove(m.name); err != nil {
				return err
			}
		}
		if err := syncDir(s.dir); err != nil {
			return err
		}
		s.log.seq = images[len(images)-1].seq
	}
	return s.findTop()
}

// findTop learns the highest key in the database.
func (s *Spool) findTop() error {
	return s.view(func(values, _ *bbolt.Bucket) error {
		if k, _ := values.Cursor().Last(); len(k) == 16 {
			s.log.top = [16]byte(k)
		} else if k != nil {
			s.log.top = [16]byte(bytes.Repeat([]byte{0xff}, 16))
		}
		return nil
	})
}

// openLog opens the files of the log and finds their batches. The images are in
// order of their numbers.
func (s *Spool) openLog() (images []*image, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), logPrefix) {
			continue
		}
		name := filepath.Join(s.dir, e.Name())
		f, err := os.Open(name)
		if err != nil {
			return images, err
		}
		m := &image{f: f, name: name}
		images = append(images, m)
		info, err := f.Stat()
		if err != nil {
			return images, err
		}
		m.size = info.Size()
		m.scan(f)
	}
	slices.SortFunc(images, func(a, b *image) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), strings.Compare(a.name, b.name))
	})
	return images, nil
}

// scan finds the batches of a segment. Behind a damaged one it looks for the next
// at every block; the salt tells a batch from what a message may hold.
func (m *image) scan(r io.ReaderAt) {
	h, _, ok := readBatch(r, 0, m.size)
	if !ok {
		return // never used, or being used for the first time
	}
	m.seq = h.seq
	skipped := 0
	for off := int64(0); off < m.size; {
		next, _, ok := readBatch(r, off, m.size)
		rising := len(m.batches) == 0 || next.number > m.last.number
		if !ok || next.seq != h.seq || next.salt != h.salt || !rising {
			skipped++
			off += logAlign
			continue
		}
		if skipped > 0 {
			m.damage++
			skipped = 0
		}
		m.batches, m.last = append(m.batches, off), next
		off += roundUp(next.length)
	}
}

// final is the last state of a key in the log.
type final struct {
	m *image
	e logged
}

// replayImages stores in the database the last state of every key in the log.
func (s *Spool) replayImages(images []*image) error {
	states := make(map[[16]byte]final)
	newest := images[len(images)-1].last
	torn := 0
	for _, m := range images {
		if m.seq < newest.floor {
			continue
		}
		if m.damage > 0 {
			s.opts.Log.Error("log of the spool is damaged, records may be lost", "path", m.name, "batches", m.damage)
		}
		for _, off := range m.batches {
			h, entries, ok := readBatch(m.f, off, m.size)
			if !ok {
				return fmt.Errorf("%s: %w", m.name, io.ErrUnexpectedEOF)
			}
			for _, e := range entries {
				if h.number == newest.number && e.size > 0 {
					// Nobody was told of a batch that a crash cut short.
					if _, intact, err := m.frame(e); err != nil || !intact {
						torn++
						continue
					}
				}
				states[e.key] = final{m, e}
			}
		}
	}
	if torn > 0 {
		s.opts.Log.Warn("the last write of the spool was cut short", "path", s.dir, "records", torn)
	}
	return s.storeStates(states)
}

// frame reads the frame of e and reports whether it is intact. One that is not is
// changed so that it never passes for an intact one.
func (m *image) frame(e logged) (raw []byte, intact bool, err error) {
	raw = make([]byte, e.size)
	if _, err := m.f.ReadAt(raw, e.off); err != nil {
		return nil, false, err
	}
	if _, err := spool.ParseFrame(raw); err == nil && bytes.Equal(raw[8:12], sumBytes(e.sum)) {
		return raw, true, nil
	}
	if len(raw) > 8 {
		copy(raw, "BAD") // instead of the magic letters
	}
	return raw, false, nil
}

func sumBytes(sum uint32) []byte {
	return []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}
}

// storeStates writes states to the database, in order of keys and in transactions
// of bounded size.
func (s *Spool) storeStates(states map[[16]byte]final) error {
	keys := make([][16]byte, 0, len(states))
	for k := range states {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, compareKeys)
	for len(keys) > 0 {
		size, n := 0, 0
		err := s.update(func(tx *bbolt.Tx) error {
			values := tx.Bucket(bucketValues)
			if values == nil {
				return errNoBuckets
			}
			values.FillPercent = 1
			for n = 0; n < len(keys) && n < 8*batchOps && size < rescueBatch; n++ {
				st := states[keys[n]]
				if st.e.size == 0 {
					if err := values.Delete(keys[n][:]); err != nil {
						return err
					}
					continue
				}
				raw, intact, err := st.m.frame(st.e)
				if err != nil {
					return err
				}
				if !intact {
					s.opts.Log.Error("a record in the log of the spool is damaged", "path", st.m.name,
						"id", spool.FromKey(keys[n]).String())
				}
				if err := values.Put(keys[n][:], raw); err != nil {
					return err
				}
				size += len(raw)
			}
			return nil
		})
		if err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
