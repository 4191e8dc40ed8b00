package bolt

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"example.com/svc/spool"
)

// condition is why writes are refused.
type condition struct {
	err  error
	full bool // passes by itself
}

// Health implements [spool.Healther].
func (s *Spool) Health() error {
	if c := s.trouble.Load(); c != nil {
		return c.err
	}
	return nil
}

// write is the writer goroutine: one transaction for all that is waiting, then
// the next. It ends after Close when nothing is waiting.
func (s *Spool) write() {
	defer close(s.stopped)
	var buf []*op
	var probeAt time.Time // of the next probe of a full disk
	for {
		var timer <-chan time.Time
		if !probeAt.IsZero() && !time.Now().Before(probeAt) {
			s.probe() // here, so that removals that keep coming do not put it off
			probeAt = time.Time{}
		}
		if c := s.trouble.Load(); c != nil && c.full {
			if probeAt.IsZero() {
				probeAt = time.Now().Add(s.opts.probeEvery)
			}
			timer = time.After(time.Until(probeAt))
		}
		batch, open := s.queue.take(buf[:0], timer)
		if !open {
			return
		}
		buf = batch
		if batch = takeOver(batch); len(batch) > 0 {
			s.commitBatch(batch)
		}
		clear(buf)
	}
}

// takeOver drops the ops whose callers have gone, in place.
func takeOver(batch []*op) []*op {
	kept := batch[:0]
	for _, o := range batch {
		if o.state.CompareAndSwap(opWaiting, opTaken) {
			kept = append(kept, o)
		}
	}
	return kept
}

// commitBatch stores a batch and tells every caller the outcome.
func (s *Spool) commitBatch(batch []*op) {
	if c := s.trouble.Load(); c != nil {
		if !c.full {
			finish(batch, c.err)
			return
		}
		batch = s.refusePuts(batch, c.err) // queued before the disk was known to be full
		if len(batch) == 0 {
			return
		}
	}
	err := s.store(batch)
	if err != nil && isFull(err) {
		full := s.becomeFull(err)
		// Removals make room and must not fail for the lack of it.
		if batch = s.refusePuts(batch, full); len(batch) == 0 {
			return
		}
		if s.db == nil {
			finish(batch, s.Health())
			return
		}
		if err = s.store(batch); err != nil && isFull(err) {
			err = s.becomeFull(err)
			finish(batch, err)
			return
		}
	}
	if err != nil {
		finish(batch, s.becomeUnhealthy(err))
		return
	}
	n, size := s.counts.committed(batch), 0
	for _, o := range batch {
		size += o.bytes
	}
	finish(batch, nil)
	if s.opts.direct {
		s.trim.touched(s, n)
		return
	}
	switch err := s.tidy(size); {
	case err != nil && isFull(err):
		_ = s.becomeFull(err) // noted there
	case err != nil:
		_ = s.becomeUnhealthy(err) // noted there
	}
}

// store makes a batch durable: in the log, but for what moves records about in the
// database.
func (s *Spool) store(batch []*op) error {
	if s.opts.direct {
		return s.transact(batch)
	}
	moves := 0
	for _, o := range batch {
		if o.move != nil {
			moves++
		}
	}
	if moves == 0 {
		return s.logBatch(batch)
	}
	values, moving := make([]*op, 0, len(batch)), make([]*op, 0, moves)
	for _, o := range batch {
		if o.move != nil {
			moving = append(moving, o)
		} else {
			values = append(values, o)
		}
	}
	if len(values) > 0 {
		if err := s.logBatch(values); err != nil {
			return err
		}
	}
	if err := s.empty(); err != nil {
		return err
	}
	if err := s.transact(moving); err != nil {
		return err
	}
	// The log may still hold what was moved away: its entries are removals.
	return s.logBatch(moving)
}

func finish(batch []*op, err error) {
	for _, o := range batch {
		o.releaseFrames()
		switch {
		case o.next != nil:
			o.pass(err)
		case err == nil:
			o.done <- o.result
		default:
			o.done <- err
		}
	}
}

// refusePuts answers the ops that store something and returns the others.
func (s *Spool) refusePuts(batch []*op, err error) []*op {
	kept := batch[:0]
	for _, o := range batch {
		if o.puts {
			finish([]*op{o}, err)
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// transact applies a batch in one transaction. When it returns nil the batch is
// on stable storage, unless NoSync is set (S1).
func (s *Spool) transact(batch []*op) error {
	return s.update(func(tx *bbolt.Tx) error {
		values, quarantine := tx.Bucket(bucketValues), tx.Bucket(bucketQuarantine)
		if values == nil || quarantine == nil {
			return &spool.CorruptError{Path: s.file, Err: errors.New("bucket is missing")}
		}
		values.FillPercent = 1 // keys are in time order: pages fill from the left
		for _, o := range batch {
			if o.move != nil {
				o.result = o.move(values, quarantine)
				continue
			}
			if err := applyEntries(values, o.entries); err != nil {
				return err
			}
		}
		return nil
	})
}

// whole returns the frame in one piece.
func (e *entry) whole() []byte {
	if e.rest == nil {
		return *e.frame
	}
	return append(append(make([]byte, 0, e.size()), *e.frame...), e.rest...)
}

func applyEntries(values *bbolt.Bucket, entries []entry) error {
	for i := range entries {
		e := &entries[i]
		var err error
		if e.frame != nil {
			err = values.Put(e.key[:], e.whole())
		} else {
			err = values.Delete(e.key[:])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// update runs fn in a write transaction and commits it. Only the writer calls it.
func (s *Spool) update(fn func(*bbolt.Tx) error) error {
	var tx *bbolt.Tx
	ended := false
	err := guard(s.file, func() (err error) {
		if tx, err = s.db.Begin(true); err != nil {
			return err
		}
		if err = fn(tx); err != nil {
			return err
		}
		err = s.opts.commit(tx)
		ended = err == nil
		return err
	})
	if tx == nil || ended {
		return err
	}
	// A failed Commit has ended the transaction already, a panic has not.
	rollback := guard(s.file, func() error {
		if err := tx.Rollback(); err != nil && !errors.Is(err, bolterrors.ErrTxClosed) {
			return err
		}
		return nil
	})
	if rollback != nil {
		s.stuck = true
	}
	return err
}

// becomeFull notes that the disk is full and returns what callers get. The
// database is opened afresh, since after a failed write its idea of the free
// pages may be older than its file.
func (s *Spool) becomeFull(cause error) error {
	err := fmt.Errorf("%w: %w", spool.ErrFull, cause)
	if s.trouble.Swap(&condition{err: err, full: true}) == nil {
		s.opts.Log.Error("spool disk is full, refusing new values", "path", s.file, "error", cause)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reopen := s.closeDB()
	if reopen == nil {
		reopen = s.openDB()
	}
	if reopen != nil {
		return s.becomeUnhealthy(fmt.Errorf("reopen after a full disk: %w", reopen))
	}
	return err
}

// becomeUnhealthy refuses writes from now on and returns what callers get (S4).
func (s *Spool) becomeUnhealthy(cause error) error {
	err := fmt.Errorf("%w: %s: %w", spool.ErrUnhealthy, s.file, cause)
	s.trouble.Store(&condition{err: err})
	s.opts.Log.Error("spool write failed, refusing writes until restart", "path", s.file, "error", cause)
	return err
}

// probeSize is how much a probe stores to learn whether there is space again.
const probeSize = 256 << 10

// probe tries a write on a disk that was full.
func (s *Spool) probe() {
	if c := s.trouble.Load(); c == nil || !c.full {
		return
	}
	err := s.update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists(bucketProbe)
		if err != nil {
			return err
		}
		return b.Put([]byte("probe"), make([]byte, probeSize))
	})
	if err == nil {
		err = s.update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketProbe) })
	}
	if k := len(s.log.segs); err == nil && k > 0 {
		last := s.log.segs[k-1]
		_, err = last.f.WriteAt(make([]byte, probeSize), last.end) // says nothing to who reads the log
	}
	switch {
	case err == nil:
		s.trouble.Store(nil)
		s.opts.Log.Info("spool disk has space again", "path", s.file)
	case isFull(err):
		_ = s.becomeFull(err) // noted there
	default:
		_ = s.becomeUnhealthy(err) // noted there
	}
}

// isFull reports whether err is a write that found no space. A flush that failed
// for lack of space is not one: what became of its pages is unknown (S4).
func isFull(err error) bool {
	const grow = "file resize error" // the database keeps only the text of this one
	if strings.HasPrefix(err.Error(), grow) {
		return strings.Contains(err.Error(), syscall.ENOSPC.Error())
	}
	return isNoSpace(err) && isWriteCall(err)
}
