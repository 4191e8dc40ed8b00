//go:build !linux

package bolt

// dropPages does nothing: elsewhere the system decides what stays resident.
func (s *Spool) dropPages() {}
