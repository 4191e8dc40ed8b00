//go:build !unix

package bolt

import (
	"errors"
	"io/fs"
	"syscall"
)

// mapAhead is false where the file grows to the size of its map.
const mapAhead = false

// errDiskFull is ERROR_DISK_FULL of Windows.
const errDiskFull = syscall.Errno(112)

func isNoSpace(err error) bool {
	return errors.Is(err, errDiskFull) || errors.Is(err, syscall.ENOSPC)
}

// isWriteCall reports whether err comes from a write and not from a flush: only
// writes go through a file and carry its path.
func isWriteCall(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Op == "write"
}

// isUnsupportedSync is true: directories cannot be flushed here.
func isUnsupportedSync(error) bool { return true }
