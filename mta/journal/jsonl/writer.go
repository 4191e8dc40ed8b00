package jsonl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
)

const (
	// chunkSize is how much is collected before it is compressed and appended: one block of the format.
	chunkSize = 128 << 10
	// maxPending bounds what is kept while the disk fails.
	maxPending = 8 * chunkSize
)

// ErrFull reports a line that was not taken, because the disk fails and the lines kept for it have reached their
// limit. The cause is wrapped beside it.
var ErrFull = errors.New("jsonl: too many lines wait for the disk")

// Writer appends lines to segments. It belongs to one goroutine, starts none, and is made by [Open].
type Writer struct {
	cfg     Config
	create  func(path string) (file, error)
	enc     *zstd.Encoder
	seg     *segment // nil when none is open
	pending []byte   // whole lines that no file has yet (J1)
	lines   int      // how many lines pending holds
}

// Open checks cfg, makes the directory and makes the segments found in it read-only; directories that several
// writers share are therefore opened by all of them before the first one writes. It makes no segment.
func Open(cfg Config) (*Writer, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("log segments in %q: %w", cfg.Dir, err)
	}
	if cfg.MaxFileSize == 0 {
		cfg.MaxFileSize = DefaultMaxFileSize
	}
	if !cfg.Lazy {
		if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("make log directory: %w", err)
		}
	}
	if err := seal(cfg.Dir); err != nil {
		return nil, err
	}
	level := cfg.Level
	if level == 0 {
		level = 3
	}
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)),
		zstd.WithEncoderConcurrency(1), // compress on the caller's goroutine
		zstd.WithWindowSize(1<<20))     // log lines repeat at short distances
	if err != nil {
		return nil, fmt.Errorf("set up compression level %d: %w", cfg.Level, err)
	}
	return &Writer{cfg: cfg, create: createFile, enc: enc}, nil
}

// Write takes one line; a missing line feed at its end is added. An error other than [ErrFull] means that the disk
// failed but the line is kept: a later Write or Flush tries a new segment. The line may be reused after the call.
func (w *Writer) Write(line []byte) error {
	if len(w.pending) >= maxPending {
		if err := w.emit(); err != nil {
			return fmt.Errorf("%w: %w", ErrFull, err)
		}
	}
	w.pending = append(w.pending, line...)
	if n := len(line); n == 0 || line[n-1] != '\n' {
		w.pending = append(w.pending, '\n')
	}
	w.lines++
	full := w.written()+int64(len(w.pending)) >= w.cfg.MaxFileSize
	if len(w.pending) < chunkSize && !full {
		return nil
	}
	if err := w.emit(); err != nil {
		return err
	}
	if w.written() >= w.cfg.MaxFileSize {
		return w.finish()
	}
	return nil
}

// Flush brings all lines to the file, so that readers see them, and closes the segment if it is old enough. Owners
// call it about once a second. After an error the lines are kept for the next call. A segment that was removed from
// outside, alone or with its directory, is given up, so that the next lines are not written where nobody finds them.
func (w *Writer) Flush() error {
	if w.seg != nil && w.seg.vanished() {
		w.seg.drop()
		w.seg = nil
	}
	if w.aged() {
		// The lines that wait belong to the old segment; if it fails they go to a new one.
		return w.Rotate()
	}
	return w.emit()
}

// Rotate brings all lines to the file and closes the segment. The next line opens another one.
func (w *Writer) Rotate() error {
	if err := w.emit(); err != nil {
		return err
	}
	return w.finish()
}

// Close is Rotate for the last time. When it fails, [Writer.Pending] lines are lost; it may be called again.
func (w *Writer) Close() error { return w.Rotate() }

// Pending returns how many lines were taken that no file has yet.
func (w *Writer) Pending() int { return w.lines }

// Segment returns the path of the open segment, or "".
func (w *Writer) Segment() string {
	if w.seg == nil {
		return ""
	}
	return w.seg.path
}

func (w *Writer) written() int64 {
	if w.seg == nil {
		return 0
	}
	return w.seg.plain
}

func (w *Writer) aged() bool {
	return w.seg != nil && w.cfg.MaxSegmentDuration > 0 && time.Since(w.seg.opened) >= w.cfg.MaxSegmentDuration
}

// emit appends the pending lines to the segment, which it opens when there is none. After an error the segment is
// given up and the lines are still pending.
func (w *Writer) emit() error {
	if len(w.pending) == 0 {
		return nil
	}
	if w.seg == nil {
		if err := w.open(); err != nil {
			return err
		}
	}
	if err := w.seg.append(w.pending); err != nil {
		err = errors.Join(err, w.seg.abandon())
		w.seg = nil
		return err
	}
	w.seg.plain += int64(len(w.pending))
	w.lines = 0
	if cap(w.pending) > maxPending {
		w.pending = nil
	}
	w.pending = w.pending[:0]
	if w.aged() {
		return w.finish()
	}
	return nil
}

// open makes the next segment and puts the header, if any, before its first chunk.
func (w *Writer) open() error {
	if err := os.MkdirAll(w.cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("make log directory: %w", err)
	}
	now := time.Now()
	for i := range 1000 {
		// Names are unique to the nanosecond; a clock that stands still or steps back may offer a taken one.
		name := now.Add(time.Duration(i)).UTC().Format(nameLayout) + w.cfg.Suffix
		path := filepath.Join(w.cfg.Dir, name)
		f, err := w.create(path)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
		w.seg = &segment{f: f, path: path, enc: w.enc, opened: now}
		w.enc.Reset(w.seg)
		if w.cfg.Header == "" {
			return nil
		}
		// The encoder keeps the header until the first chunk is flushed, or fails then.
		if _, err := w.enc.Write([]byte(w.cfg.Header)); err != nil {
			err = errors.Join(fmt.Errorf("open segment: %w", err), w.seg.abandon())
			w.seg = nil
			return err
		}
		return nil
	}
	return fmt.Errorf("open segment: no free name at %s in %s", now.UTC().Format(nameLayout), w.cfg.Dir)
}

func (w *Writer) finish() error {
	if w.seg == nil {
		return nil
	}
	seg := w.seg
	w.seg = nil
	return seg.finish()
}
