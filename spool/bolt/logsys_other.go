//go:build !linux

package bolt

import (
	"os"
	"slices"
)

// writeVector writes vec to f at off with one call.
func writeVector(f *os.File, vec [][]byte, off int64) error {
	_, err := f.WriteAt(slices.Concat(vec...), off)
	return err
}

// flushData brings the content of f to stable storage.
func flushData(f *os.File) error { return f.Sync() }
