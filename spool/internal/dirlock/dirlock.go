// Package dirlock keeps a second process, or a second opener in this one, out of
// a directory.
//
// The lock is a file named "lock" in the directory with an advisory lock of the
// operating system on it, which ends with the process however it dies. The file
// stays; only the lock on it counts. Where the system has no such locks, Acquire
// succeeds and protects nothing.
package dirlock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/svc/spool"
)

// errHeld is what lockFile returns when another opener holds the lock.
var errHeld = errors.New("held")

// Lock is a held lock. It is safe for use by one goroutine.
type Lock struct{ f *os.File }

// Acquire locks dir, which must exist. It does not wait: when another opener
// holds the lock the error is spool.ErrLocked.
func Acquire(dir string) (*Lock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock spool %s: %w", dir, err)
	}
	if err := lockFile(f); err != nil {
		_ = f.Close() // nothing was written
		if errors.Is(err, errHeld) {
			return nil, fmt.Errorf("%w: %s", spool.ErrLocked, dir)
		}
		return nil, fmt.Errorf("lock spool %s: %w", dir, err)
	}
	return &Lock{f: f}, nil
}

// Release gives the lock back.
func (l *Lock) Release() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("unlock spool: %w", err)
	}
	return nil
}
