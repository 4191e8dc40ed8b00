//go:build !unix

package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// raiseFileLimit does nothing: these systems have no such limit.
func raiseFileLimit() {}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
