//go:build unix

package main

import (
	"io"
	"os"
	"syscall"

	"golang.org/x/term"
)

// raiseFileLimit lifts the soft limit of open files to the hard limit. Failing is no error: the limit stays.
func raiseFileLimit() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil && l.Cur < l.Max {
		l.Cur = l.Max
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
