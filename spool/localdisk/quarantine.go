package localdisk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"example.com/svc/spool"
)

// reasonSuffix marks the file beside a record set aside.
const reasonSuffix = ".reason"

// maxReason is how much of a reason is kept, in bytes.
const maxReason = 1024

// Quarantine implements [spool.Quarantiner]: the file moves to the folder
// "quarantine", where a file of the same name with ".reason" tells why.
func (s *Spool) Quarantine(ctx context.Context, id spool.ID, reason string) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.admit(ctx, nil); err != nil {
		return err
	}
	to := filepath.Join(s.aside.path, id.String())
	if err := os.Rename(s.fileOf(id), to); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = spool.ErrNotFound
		}
		return fmt.Errorf("quarantine %s: %w", id, err)
	}
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	if err := os.WriteFile(to+reasonSuffix, []byte(reason+"\n"), 0o640); err != nil {
		// The record is out of the way, which is what counts.
		s.opts.Log.Warn("cannot note why a record was set aside", "id", id, "reason", reason, "error", err)
	}
	if err := errors.Join(s.aside.flush(s), s.folderOf(id).flush(s)); err != nil {
		return s.becomeUnhealthy(err)
	}
	return nil
}

// Quarantined implements [spool.Quarantiner].
func (s *Spool) Quarantined(ctx context.Context) (int, error) {
	if err := s.begin(); err != nil {
		return 0, err
	}
	defer s.end()
	n := 0
	err := eachName(s.aside.path, func(name string) {
		if !strings.HasSuffix(name, reasonSuffix) {
			n++
		}
	})
	if err == nil {
		err = ctx.Err()
	}
	return n, err
}
