package localdisk

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// folder flushes one directory for all who wait for it at once.
type folder struct {
	path string

	made    atomic.Bool
	started atomic.Uint64 // number of the flush that began last

	mu       sync.Mutex // held during a flush; protects the fields below
	finished uint64     // number of the flush that ended last
	failed   error      // of the first flush that failed; it stays (S4)
}

// make creates the folder, durably, when that was not done yet.
func (f *folder) make(s *Spool) error {
	if f.made.Load() {
		return nil
	}
	if err := os.Mkdir(f.path, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := s.root.flush(s); err != nil {
		return s.becomeUnhealthy(err)
	}
	f.made.Store(true)
	return nil
}

// flush makes the names in the folder durable. A flush that had begun before the
// call does not count, since it may have passed the caller's name already; one
// that began while the caller waited its turn does.
func (f *folder) flush(s *Spool) error {
	if s.opts.NoSync {
		return nil
	}
	seen := f.started.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed != nil || f.finished > seen {
		return f.failed
	}
	n := f.started.Add(1)
	f.failed = f.flushNow(s)
	f.finished = n
	return f.failed
}

func (f *folder) flushNow(s *Spool) error {
	d, err := os.Open(f.path)
	if err != nil {
		return err
	}
	err = s.opts.sync(d)
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil // this file system keeps names without being asked
	}
	return errors.Join(err, d.Close())
}
