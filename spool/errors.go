package spool

import (
	"errors"
	"fmt"
)

// Errors about what was asked.
var (
	// ErrNotFound says that no value is stored under the ID.
	ErrNotFound = errors.New("spool: not found")
	// ErrTooLarge says that a value exceeds MaxValue.
	ErrTooLarge = errors.New("spool: value too large")
	// ErrClosed says that the spool was closed.
	ErrClosed = errors.New("spool: closed")
)

// Errors about the state of the storage.
var (
	// ErrFull says that the disk is full or below its configured minimum. It
	// passes by itself once there is space again.
	ErrFull = errors.New("spool: disk is full")
	// ErrLocked says that another spool, in this or another process, holds the path.
	ErrLocked = errors.New("spool: in use by another process")
	// ErrUnhealthy says that a write or flush failed and that the spool refuses
	// writes since then (S4). The cause is wrapped beside it.
	ErrUnhealthy = errors.New("spool: not accepting writes")
)

// CorruptError says that a stored record cannot be trusted: truncated, changed
// or unreadable.
type CorruptError struct {
	// ID is the record; zero when it is not known.
	ID ID
	// Path is the file or database that holds it; may be empty.
	Path string
	// Err is what was found.
	Err error
}

// Error returns the record, the path and what was found.
func (e *CorruptError) Error() string {
	switch {
	case e.Path == "" && e.ID.IsZero():
		return fmt.Sprintf("spool: corrupt record: %v", e.Err)
	case e.Path == "":
		return fmt.Sprintf("spool: corrupt record %s: %v", e.ID, e.Err)
	case e.ID.IsZero():
		return fmt.Sprintf("spool: corrupt record in %s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("spool: corrupt record %s in %s: %v", e.ID, e.Path, e.Err)
}

// Unwrap returns what was found.
func (e *CorruptError) Unwrap() error { return e.Err }
