package bolt

import (
	"cmp"
	"errors"
	"os"
	"slices"

	"go.etcd.io/bbolt"
)

// tidy keeps the log small after a batch of n bytes: it drops segments that hold
// nothing, lets the database learn of removals and, when the log is full, moves
// some of its oldest records to the database.
func (s *Spool) tidy(n int) error {
	l := &s.log
	if err := s.retire(); err != nil {
		return err
	}
	full := l.bytes > logBytes || len(l.index) > logRecords
	if !full && len(l.dead) < logMarks && !(len(l.segs) > 1 && l.segs[0].live == 0) {
		return nil
	}
	step := 0
	if full {
		step = max(logStep, 2*n)
	}
	if err := s.move(step); err != nil {
		return err
	}
	return s.retire()
}

// moved is a record on its way to the database.
type moved struct {
	key [16]byte
	raw []byte
}

// move stores up to size bytes of the oldest records in the database and removes
// there what was removed, in one transaction.
func (s *Spool) move(size int) error {
	l := &s.log
	records, err := l.oldest(size)
	if err != nil {
		return err
	}
	if len(records) == 0 && len(l.dead) == 0 {
		l.handedOver(nil)
		return nil
	}
	dead := make([][16]byte, 0, len(l.dead))
	for k := range l.dead {
		dead = append(dead, k)
	}
	slices.SortFunc(dead, compareKeys)
	slices.SortFunc(records, func(a, b moved) int { return compareKeys(a.key, b.key) })
	err = s.update(func(tx *bbolt.Tx) error {
		values := tx.Bucket(bucketValues)
		if values == nil {
			return errNoBuckets
		}
		values.FillPercent = 1 // keys are in time order: pages fill from the left
		for i := range dead {
			if err := values.Delete(dead[i][:]); err != nil {
				return err
			}
		}
		for i := range records {
			if err := values.Put(records[i].key[:], records[i].raw); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	l.handedOver(records)
	s.trim.touched(s, len(dead)+len(records))
	return nil
}

// oldest reads up to size bytes of the records in the oldest segment.
func (l *log) oldest(size int) ([]moved, error) {
	if size == 0 || len(l.segs) == 0 {
		return nil, nil
	}
	old := l.segs[0]
	if len(l.moving) == 0 {
		for k, p := range l.index {
			if p.seg == old {
				l.moving = append(l.moving, k)
			}
		}
		slices.SortFunc(l.moving, compareKeys)
	}
	var records []moved
	for size > 0 && len(l.moving) > 0 {
		k := l.moving[0]
		l.moving = l.moving[1:]
		p, ok := l.index[k]
		if !ok || p.seg != old {
			continue
		}
		raw, err := p.read()
		if err != nil {
			return nil, err
		}
		records = append(records, moved{k, raw})
		size -= p.size
	}
	return records, nil
}

// handedOver notes that the database has records and has removed what is dead.
func (l *log) handedOver(records []moved) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.dead)
	for _, seg := range l.segs {
		seg.marked = false
	}
	for _, r := range records {
		if p, ok := l.index[r.key]; ok {
			p.seg.live--
			delete(l.index, r.key)
		}
		if compareKeys(r.key, l.top) > 0 {
			l.top = r.key
		}
	}
}

// empty moves all of the log to the database.
func (s *Spool) empty() error {
	l := &s.log
	for len(l.index) > 0 || len(l.dead) > 0 {
		if err := s.move(rescueBatch); err != nil {
			return err
		}
		if len(l.segs) > 1 && l.segs[0].live == 0 {
			if err := s.retire(); err != nil {
				return err
			}
		}
	}
	return nil
}

// closeLog closes the files of the log and, when nothing in them is needed,
// removes them, the oldest first. mu of the spool is held.
func (s *Spool) closeLog(needed bool) error {
	l := &s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	all := append(slices.Clone(l.spare), l.segs...)
	slices.SortFunc(all, func(a, b *segment) int { return cmp.Compare(a.seq, b.seq) })
	var errs []error
	for _, seg := range all {
		errs = append(errs, seg.f.Close())
		if !needed {
			errs = append(errs, os.Remove(seg.name))
		}
	}
	l.segs, l.spare, l.closed = nil, nil, true
	if len(all) > 0 && !needed {
		errs = append(errs, syncDir(s.dir))
	}
	return errors.Join(errs...)
}
