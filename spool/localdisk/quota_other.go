//go:build !unix

package localdisk

import "syscall"

// errQuota is ERROR_DISK_FULL of Windows.
var errQuota error = syscall.Errno(112)
