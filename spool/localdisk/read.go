package localdisk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"slices"

	"example.com/svc/spool"
)

// namesAtOnce is how many names of a folder are read in one step.
const namesAtOnce = 1024

var (
	errIrregular = errors.New("not a regular file")
	errFileSize  = errors.New("file larger than any value")
)

// Get implements [spool.Spool].
func (s *Spool) Get(ctx context.Context, id spool.ID) ([]byte, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path := s.fileOf(id)
	value, err := readFile(path)
	var corrupt *spool.CorruptError
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("get %s: %w", id, spool.ErrNotFound)
	case errors.As(err, &corrupt):
		corrupt.ID, corrupt.Path = id, path
		return nil, err
	case errors.Is(err, fs.ErrPermission):
		return nil, &spool.CorruptError{ID: id, Path: path, Err: err}
	}
	return nil, fmt.Errorf("get %s: %w", id, err)
}

// readFile returns the value in the file at path.
func readFile(path string) ([]byte, error) {
	// A pipe would hang on opening, so look before.
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &spool.CorruptError{Err: errIrregular}
	}
	if info.Size() > spool.MaxValue+spool.HeaderSize {
		return nil, &spool.CorruptError{Err: errFileSize}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, info.Size())
	if _, err := io.ReadFull(f, b); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return nil, &spool.CorruptError{Err: err}
		}
		return nil, err
	}
	return spool.ParseFrame(b)
}

// All implements [spool.Spool]. It reads all names before it yields the first.
func (s *Spool) All(ctx context.Context) iter.Seq2[spool.ID, error] {
	return func(yield func(spool.ID, error) bool) {
		keys, err := s.keys(ctx)
		for _, k := range keys {
			if ctxErr := ctx.Err(); ctxErr != nil {
				err = ctxErr
				break
			}
			if !yield(spool.FromKey(k), nil) {
				return
			}
		}
		if err != nil {
			yield(spool.ID{}, err)
		}
	}
}

// keys returns the keys of all stored values, sorted; along with an error, those
// of the folders that could be read.
func (s *Spool) keys(ctx context.Context) ([][16]byte, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	var keys [][16]byte
	var errs []error
	for i := range s.folders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err := eachName(s.folders[i].path, func(name string) {
			id, err := spool.ParseID(name)
			if err == nil && int(id[0]) == i && id.String() == name {
				keys = append(keys, id.Key())
			}
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("enumerate spool: %w", err))
		}
	}
	slices.SortFunc(keys, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) })
	return keys, errors.Join(errs...)
}

// eachName calls fn with the names in dir.
func eachName(dir string, fn func(string)) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		names, err := d.Readdirnames(namesAtOnce)
		for _, name := range names {
			fn(name)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
