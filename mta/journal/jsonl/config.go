package jsonl

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// DefaultMaxFileSize is the size at which segments are closed unless asked otherwise, in bytes before compression.
const DefaultMaxFileSize = 1_000_000_000

// Config says where and how segments are written (logs.md section 3).
type Config struct {
	// Dir is the directory of the segments. Open makes it, with its parents.
	Dir string
	// Lazy leaves making Dir to the first line.
	Lazy bool
	// Suffix is appended to the names of the segments. It may not hold a path separator.
	Suffix string
	// MaxFileSize closes a segment once this many bytes before compression were written, the header not counted.
	// Zero means [DefaultMaxFileSize].
	MaxFileSize int64
	// MaxSegmentDuration closes a segment this long after it was opened. Zero means no limit.
	MaxSegmentDuration time.Duration
	// Level is the zstd level, 1 to 21, mapped on the four levels of the encoder; 0 is the default, 3.
	Level int
	// Header is written verbatim at the start of each segment.
	Header string
}

func (c *Config) check() error {
	switch {
	case c.Dir == "":
		return errors.New("no directory given")
	case strings.ContainsAny(c.Suffix, "/\x00"):
		return fmt.Errorf("suffix %q holds a path separator", c.Suffix)
	case c.Level < 0 || c.Level > 21:
		return fmt.Errorf("compression level %d is not within 0 to 21", c.Level)
	case c.MaxFileSize < 0 || c.MaxSegmentDuration < 0:
		return errors.New("limits of a segment may not be negative")
	}
	return nil
}
