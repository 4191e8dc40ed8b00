package localdisk

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"example.com/svc/spool"
	"example.com/svc/spool/internal/dirlock"
)

// Folders beside those of the values.
const (
	tmpDir        = "tmp"
	quarantineDir = "quarantine"
)

// Options tunes a spool. The zero value is the durable default.
type Options struct {
	// NoSync leaves flushing to the operating system: faster, and a power loss
	// loses what was acknowledged (setting flush = false).
	NoSync bool
	// Log receives what is done about trouble. Nil means slog.Default.
	Log *slog.Logger

	// sync flushes an open file or folder; tests replace it to make it fail.
	sync func(*os.File) error
}

// Spool is a spool of files. It is safe for use by many goroutines.
type Spool struct {
	dir  string
	opts Options
	lock *dirlock.Lock

	// calls is held shared by every operation and exclusively by Close, which
	// thereby waits for them.
	calls  sync.RWMutex
	closed bool // protected by calls

	folders [256]folder
	root    folder
	aside   folder
	tmpSeq  atomic.Uint64
	trouble atomic.Pointer[error] // nil while healthy
}

var (
	_ spool.Spool       = (*Spool)(nil)
	_ spool.Batcher     = (*Spool)(nil)
	_ spool.Quarantiner = (*Spool)(nil)
	_ spool.Healther    = (*Spool)(nil)
)

// Open opens the spool in directory path and makes it when it is missing. Files
// that a crash left half written are removed. The error is spool.ErrLocked when
// another process, or another spool of this one, holds the directory.
func Open(path string, o Options) (*Spool, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.sync == nil {
		o.sync = (*os.File).Sync
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, fmt.Errorf("make spool directory: %w", err)
	}
	lock, err := dirlock.Acquire(path)
	if err != nil {
		return nil, err
	}
	s := &Spool{dir: path, opts: o, lock: lock}
	s.root.path = path
	s.aside.path = filepath.Join(path, quarantineDir)
	for i := range s.folders {
		s.folders[i].path = filepath.Join(path, fmt.Sprintf("%02x", i))
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open spool %s: %w", path, err), lock.Release())
	}
	return s, nil
}

// prepare empties the folder for files being written and makes the others.
func (s *Spool) prepare() error {
	tmp := filepath.Join(s.dir, tmpDir)
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	for _, dir := range []string{tmp, s.aside.path} {
		if err := os.Mkdir(dir, 0o750); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return s.root.flush(s)
}

// Close implements [spool.Spool].
func (s *Spool) Close() error {
	s.calls.Lock()
	defer s.calls.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.lock.Release()
}

// begin enters an operation; end must follow when the error is nil.
func (s *Spool) begin() error {
	s.calls.RLock()
	if s.closed {
		s.calls.RUnlock()
		return spool.ErrClosed
	}
	return nil
}

func (s *Spool) end() { s.calls.RUnlock() }

// Health implements [spool.Healther].
func (s *Spool) Health() error {
	if p := s.trouble.Load(); p != nil {
		return *p
	}
	return nil
}

// becomeUnhealthy refuses writes from now on and returns what callers get (S4).
func (s *Spool) becomeUnhealthy(cause error) error {
	err := fmt.Errorf("%w: %s: %w", spool.ErrUnhealthy, s.dir, cause)
	if s.trouble.CompareAndSwap(nil, &err) {
		s.opts.Log.Error("spool flush failed, refusing writes until restart", "path", s.dir, "error", cause)
	}
	return err
}

func (s *Spool) folderOf(id spool.ID) *folder { return &s.folders[id[0]] }

func (s *Spool) fileOf(id spool.ID) string {
	return filepath.Join(s.folders[id[0]].path, id.String())
}
