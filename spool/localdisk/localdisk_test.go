package localdisk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/svc/spool"
	"example.com/svc/spool/spooltest"
)

func openTest(t testing.TB, dir string, o Options) *Spool {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSpool(t *testing.T) {
	spooltest.Run(t, func(t testing.TB, dir string) spool.Spool { return openTest(t, dir, Options{}) },
		spooltest.Durable(),
		spooltest.Corrupter(false, func(t testing.TB, s spool.Spool, _ string, id spool.ID) {
			name := s.(*Spool).fileOf(id)
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2] ^= 1
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}))
}

func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	defer s.Close()
	ids := spool.NewIDs()
	for name, damage := range map[string]func(path string) error{
		"S3 empty":     func(p string) error { return os.Truncate(p, 0) },
		"S3 truncated": func(p string) error { return os.Truncate(p, 20) },
		"S3 longer":    func(p string) error { return os.Truncate(p, 200) },
		"S3 version": func(p string) error {
			b, err := os.ReadFile(p)
			b[3] = 9
			return errors.Join(err, os.WriteFile(p, b, 0o600))
		},
		"S3 folder": func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) },
		"S3 symlink": func(p string) error {
			return errors.Join(os.Remove(p), os.Symlink("/etc/hostname", p))
		},
	} {
		id := ids.Next()
		if err := s.Put(t.Context(), id, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if err := damage(s.fileOf(id)); err != nil {
			t.Fatal(err)
		}
		var corrupt *spool.CorruptError
		if _, err := s.Get(t.Context(), id); !errors.As(err, &corrupt) || corrupt.Path != s.fileOf(id) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStrangeFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	id := spool.NewIDs().Next()
	if err := s.Put(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(dir, tmpDir, id.String()+".1")
	notes := filepath.Join(s.folderOf(id).path, "notes")
	for _, name := range []string{half, notes} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = openTest(t, dir, Options{})
	defer s.Close()
	if _, err := os.Stat(half); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("half written file is still there: %v", err)
	}
	if _, err := os.Stat(notes); err != nil {
		t.Errorf("foreign file: %v", err)
	}
	n := 0
	for got, err := range s.All(t.Context()) {
		if n++; err != nil || got != id {
			t.Errorf("All: %s, %v", got, err)
		}
	}
	if n != 1 {
		t.Errorf("All yields %d ids", n)
	}
}

func TestFailingFlush(t *testing.T) {
	for name, tc := range map[string]struct {
		err       error
		onFolder  bool
		want      error
		unhealthy bool
	}{
		"S4 file":             {syscall.EIO, false, spool.ErrUnhealthy, true},
		"S4 folder":           {syscall.EIO, true, spool.ErrUnhealthy, true},
		"file without space":  {syscall.ENOSPC, false, spool.ErrFull, false},
		"S4 folder no space ": {syscall.ENOSPC, true, spool.ErrUnhealthy, true},
	} {
		t.Run(name, func(t *testing.T) {
			failing := false
			s := openTest(t, t.TempDir(), Options{sync: func(f *os.File) error {
				info, err := f.Stat()
				if err == nil && failing && info.IsDir() == tc.onFolder {
					return tc.err
				}
				return f.Sync()
			}})
			defer s.Close()
			id := spool.NewIDs().Next()
			failing = true
			err := s.Put(t.Context(), id, []byte("x"))
			if !errors.Is(err, tc.want) || !errors.Is(err, tc.err) {
				t.Errorf("Put: %v, want %v", err, tc.want)
			}
			if _, err := s.Get(t.Context(), id); !errors.Is(err, spool.ErrNotFound) {
				t.Errorf("Get: %v", err)
			}
			failing = false
			err = s.Put(t.Context(), id, []byte("x"))
			if tc.unhealthy != errors.Is(err, spool.ErrUnhealthy) || tc.unhealthy != (s.Health() != nil) {
				t.Errorf("later: Put %v, Health %v", err, s.Health())
			}
		})
	}
}

func BenchmarkPutDelete(b *testing.B) {
	spooltest.Benchmark(b, func(b testing.TB, dir string) spool.Spool { return openTest(b, dir, Options{}) })
}
