package bolt

import (
	"errors"
	"fmt"
	"runtime/debug"

	bolterrors "go.etcd.io/bbolt/errors"

	"example.com/svc/spool"
)

// guard runs fn and turns a panic or memory fault into a *spool.CorruptError.
// The database asserts what it reads from its pages and reads them through a
// memory map, so damage shows as a panic, or as a fault when the file is shorter
// than the map.
func guard(path string, fn func() error) (err error) {
	old := debug.SetPanicOnFault(true) // of this goroutine only
	defer debug.SetPanicOnFault(old)
	defer func() {
		if r := recover(); r != nil {
			err = &spool.CorruptError{Path: path, Err: fmt.Errorf("database: %v", r)}
		}
	}()
	return fn()
}

// isDamage reports whether err of opening a database comes from its content.
func isDamage(err error) bool {
	var corrupt *spool.CorruptError
	return errors.As(err, &corrupt) ||
		errors.Is(err, bolterrors.ErrInvalid) ||
		errors.Is(err, bolterrors.ErrVersionMismatch) ||
		errors.Is(err, bolterrors.ErrChecksum) ||
		errors.Is(err, bolterrors.ErrIncompatibleValue)
}
