//go:build darwin || linux

package spool

import "golang.org/x/sys/unix"

// statfs asks the file system of path. Free bytes are those an ordinary user
// may take.
func statfs(path string) (diskUsage, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return diskUsage{}, err
	}
	size := uint64(st.Bsize)
	return diskUsage{
		freeBytes: st.Bavail * size, totalBytes: st.Blocks * size,
		freeInodes: st.Ffree, totalInodes: st.Files,
	}, nil
}
