package bolt

import (
	"golang.org/x/sys/unix"
)

// dropPages unmaps the resident pages of the database; mu is held or the spool
// not yet shared. An open read transaction keeps the map in place meanwhile.
func (s *Spool) dropPages() {
	_ = guard(s.file, func() error {
		tx, err := s.db.Begin(false)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // ends a read, cannot fail
		info := s.db.Info()
		size := min(tx.Size(), int64(1)<<40)
		if info.Data == 0 || size == 0 {
			return nil
		}
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, info.Data, uintptr(size), unix.MADV_DONTNEED)
		if errno != 0 {
			return errno
		}
		return nil
	}) // an advice: when it fails, memory stays resident and nothing else changes
}
