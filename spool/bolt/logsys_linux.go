package bolt

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// vectorMax is how many pieces one call writes.
const vectorMax = 1024

// writeVector writes vec to f at off with as few calls as possible. It changes vec.
func writeVector(f *os.File, vec [][]byte, off int64) error {
	fd := int(f.Fd())
	for len(vec) > 0 {
		n, err := unix.Pwritev(fd, vec[:min(len(vec), vectorMax)], off)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = unix.EIO
		}
		if err != nil {
			return &os.PathError{Op: "write", Path: f.Name(), Err: err}
		}
		off += int64(n)
		for len(vec) > 0 && n >= len(vec[0]) {
			n -= len(vec[0])
			vec = vec[1:]
		}
		if n > 0 {
			vec[0] = vec[0][n:]
		}
	}
	return nil
}

// flushData brings the content of f to stable storage.
func flushData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
