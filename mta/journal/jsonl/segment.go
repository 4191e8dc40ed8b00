package jsonl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/klauspost/compress/zstd"
)

// nameLayout makes names that sort by time (logs.md 3.3).
const nameLayout = "20060102-150405.000000000"

const writeBits fs.FileMode = 0o222

// file is what a segment needs of an *os.File; tests put failing ones in its place.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
	Chmod(mode fs.FileMode) error
}

// createFile makes a file that did not exist.
func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o644)
}

// segment is one open file with its stream.
type segment struct {
	f      file
	path   string
	enc    *zstd.Encoder
	opened time.Time
	plain  int64 // bytes before compression, without the header
	size   int64 // bytes handed to the file
	good   int64 // bytes of the file up to the end of the last whole chunk
}

// Write hands compressed bytes to the file.
func (s *segment) Write(p []byte) (int, error) {
	n, err := s.f.Write(p)
	s.size += int64(n)
	return n, err
}

// append compresses one chunk and brings it to the file.
func (s *segment) append(chunk []byte) error {
	if _, err := s.enc.Write(chunk); err != nil {
		return fmt.Errorf("append to %s: %w", s.path, err)
	}
	if err := s.enc.Flush(); err != nil {
		return fmt.Errorf("append to %s: %w", s.path, err)
	}
	s.good = s.size
	return nil
}

// finish ends the stream and makes the file read-only. The lines were in the file before.
func (s *segment) finish() error {
	err := s.enc.Close()
	if err != nil {
		err = errors.Join(err, s.f.Truncate(s.good))
	}
	// The bits are removed after the sync: after a power loss, too, read-only means complete.
	err = errors.Join(err, s.f.Sync(), s.f.Chmod(0o644&^writeBits), s.f.Close())
	if err != nil {
		return fmt.Errorf("finish segment %s: %w", s.path, err)
	}
	return nil
}

// abandon gives the segment up after a failed append: what the file holds of the failed chunk is cut off (J1), and a
// file without lines is removed (J2).
func (s *segment) abandon() error {
	s.enc.Reset(nil)
	if s.good == 0 {
		return errors.Join(s.f.Close(), os.Remove(s.path))
	}
	return errors.Join(s.f.Truncate(s.good), s.f.Chmod(0o644&^writeBits), s.f.Close())
}

// vanished reports whether the file was removed from its directory.
func (s *segment) vanished() bool {
	_, err := os.Lstat(s.path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// drop closes a file that has vanished. Nobody can read it any more, so an error of its last bytes means nothing.
func (s *segment) drop() {
	s.enc.Reset(nil)
	_ = s.f.Close()
}

// seal removes the write bits of the complete or left-over segments in dir (logs.md 3.5). A directory that does not
// exist is fine.
func seal(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list segments: %w", err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil {
			return fmt.Errorf("make old segments read-only: %w", err)
		}
		if info.Mode()&writeBits == 0 {
			continue
		}
		err = os.Chmod(filepath.Join(dir, e.Name()), info.Mode().Perm()&^writeBits)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make old segments read-only: %w", err)
		}
	}
	return nil
}
