//go:build unix

package bolt

import (
	"errors"
	"io/fs"
	"syscall"
)

// mapAhead says that mapping more than the file holds costs address space only.
const mapAhead = true

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isWriteCall reports whether err comes from a write and not from a flush: only
// writes go through a file and carry its path.
func isWriteCall(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && (path.Op == "write" || path.Op == "pwrite" || path.Op == "truncate")
}

func isUnsupportedSync(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP)
}
