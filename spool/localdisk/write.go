package localdisk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"example.com/svc/spool"
)

// parallelFiles is how many files of a batch are written and flushed at a time.
const parallelFiles = 16

// maxPooledFrame is the largest buffer that is kept for reuse.
const maxPooledFrame = 1 << 20

var framePool = sync.Pool{New: func() any { return new([]byte) }}

// Put implements [spool.Spool].
func (s *Spool) Put(ctx context.Context, id spool.ID, value []byte) error {
	return s.PutBatch(ctx, []spool.Item{{ID: id, Value: value}})
}

// PutBatch implements [spool.Batcher]. After an error new IDs of the batch are
// gone; an ID that was there before has its old or its new value.
func (s *Spool) PutBatch(ctx context.Context, items []spool.Item) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.admit(ctx, items); err != nil || len(items) == 0 {
		return err
	}
	names := make([]string, len(items))
	err := s.writeFiles(items, names)
	if err != nil {
		for _, name := range names {
			if name != "" {
				_ = os.Remove(name) // emptied at the next start otherwise
			}
		}
		return err
	}
	return s.publish(items, names)
}

func (s *Spool) admit(ctx context.Context, items []spool.Item) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("spool write not begun: %w", err)
	}
	if err := s.Health(); err != nil {
		return err
	}
	for _, it := range items {
		if len(it.Value) > spool.MaxValue {
			return fmt.Errorf("put %s of %d bytes: %w", it.ID, len(it.Value), spool.ErrTooLarge)
		}
	}
	return nil
}

// writeFiles writes and flushes the items under temporary names.
func (s *Spool) writeFiles(items []spool.Item, names []string) error {
	if len(items) == 1 {
		return s.writeFile(&items[0], &names[0])
	}
	errs := make([]error, len(items))
	slots := make(chan struct{}, parallelFiles)
	var wg sync.WaitGroup
	for i := range items {
		slots <- struct{}{}
		wg.Go(func() {
			errs[i] = s.writeFile(&items[i], &names[i])
			<-slots
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// writeFile writes and flushes one item and tells the name it used.
func (s *Spool) writeFile(it *spool.Item, name *string) error {
	path := filepath.Join(s.dir, tmpDir, it.ID.String()+"."+strconv.FormatUint(s.tmpSeq.Add(1), 16))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if err != nil {
		return writeError(it.ID, err)
	}
	*name = path
	err = writeFrame(f, it.Value)
	flushed := true
	if err == nil && !s.opts.NoSync {
		err = s.opts.sync(f)
		flushed = err == nil
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	// A file that found no space is thrown away, so nothing depends on what
	// became of its pages. Any other failed flush tells of a sick disk (S4).
	if !flushed && !isNoSpace(err) {
		return s.becomeUnhealthy(err)
	}
	if err != nil {
		return writeError(it.ID, err)
	}
	return nil
}

func writeFrame(f *os.File, value []byte) error {
	if len(value)+spool.HeaderSize > maxPooledFrame {
		h := spool.FrameHeader(value)
		if _, err := f.Write(h[:]); err != nil {
			return err
		}
		_, err := f.Write(value)
		return err
	}
	p := framePool.Get().(*[]byte)
	defer framePool.Put(p)
	*p = spool.AppendFrame((*p)[:0], value)
	_, err := f.Write(*p)
	return err
}

// publish renames the files into place and flushes the folders.
func (s *Spool) publish(items []spool.Item, names []string) error {
	var fresh []string // names that did not exist before
	var used [256]bool
	err := func() error {
		for i, it := range items {
			dir := s.folderOf(it.ID)
			if err := dir.make(s); err != nil {
				return writeError(it.ID, err)
			}
			final := s.fileOf(it.ID)
			if _, err := os.Lstat(final); errors.Is(err, fs.ErrNotExist) {
				fresh = append(fresh, final)
			}
			if err := os.Rename(names[i], final); err != nil {
				return writeError(it.ID, err)
			}
			names[i] = ""
			used[it.ID[0]] = true
		}
		return s.flushFolders(&used)
	}()
	if err != nil {
		for _, name := range append(fresh, names...) {
			if name != "" {
				_ = os.Remove(name) // best effort: the error tells that none counts as stored
			}
		}
	}
	return err
}

func (s *Spool) flushFolders(used *[256]bool) error {
	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	flush := func(f *folder) {
		if err := f.flush(s); err != nil {
			mu.Lock()
			errs = append(errs, err)
			mu.Unlock()
		}
	}
	var last *folder
	for i := range used {
		if !used[i] {
			continue
		}
		if f := last; f != nil {
			wg.Go(func() { flush(f) })
		}
		last = &s.folders[i]
	}
	if last != nil {
		flush(last) // the only one in most cases: no goroutine for it
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return s.becomeUnhealthy(err)
	}
	return nil
}

// writeError adds what was tried, and ErrFull when there is no space.
func writeError(id spool.ID, err error) error {
	if errors.Is(err, spool.ErrUnhealthy) {
		return err
	}
	if isNoSpace(err) {
		return fmt.Errorf("put %s: %w: %w", id, spool.ErrFull, err)
	}
	return fmt.Errorf("put %s: %w", id, err)
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, errQuota)
}

// Delete implements [spool.Spool].
func (s *Spool) Delete(ctx context.Context, id spool.ID) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.admit(ctx, nil); err != nil {
		return err
	}
	if err := os.Remove(s.fileOf(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete %s: %w", id, err)
	}
	return nil
}

// DeleteBatch implements [spool.Batcher]. It tries all ids.
func (s *Spool) DeleteBatch(ctx context.Context, ids []spool.ID) error {
	var errs []error
	for _, id := range ids {
		if err := s.Delete(ctx, id); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
