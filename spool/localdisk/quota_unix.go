//go:build unix

package localdisk

import "syscall"

var errQuota error = syscall.EDQUOT
