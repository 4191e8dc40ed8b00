package bolt

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/svc/spool"
)

// TestRealFailingCalls exchanges the database file below the database for
// devices, so that its own writes and flushes fail: /dev/full takes no byte, and
// /dev/zero takes all and cannot be flushed.
func TestRealFailingCalls(t *testing.T) {
	for device, want := range map[string]error{"/dev/full": spool.ErrFull, "/dev/zero": spool.ErrUnhealthy} {
		t.Run(device, func(t *testing.T) {
			var file *os.File
			s := openTest(t, t.TempDir(), Options{
				Log: quiet(),
				OpenFile: func(name string, flag int, perm os.FileMode) (f *os.File, err error) {
					f, err = os.OpenFile(name, flag, perm)
					file = f
					return f, err
				},
			})
			defer s.Close()
			ids := spool.NewIDs()
			kept, other := ids.Next(), ids.Next()
			for range 40 { // leaves free pages, so that the file need not grow
				if err := s.Put(t.Context(), kept, make([]byte, 30<<10)); err != nil {
					t.Fatal(err)
				}
			}
			dev, err := os.OpenFile(device, os.O_RDWR, 0)
			if err != nil {
				t.Skip(err)
			}
			defer dev.Close()
			if err := unix.Dup3(int(dev.Fd()), int(file.Fd()), 0); err != nil {
				t.Fatal(err)
			}
			err = s.Put(t.Context(), other, []byte("x"))
			if !errors.Is(err, want) {
				t.Errorf("S1 Put: %v, want %v", err, want)
			}
			if !errors.Is(want, spool.ErrUnhealthy) {
				return // the spool has opened its file again
			}
			if err := s.Put(t.Context(), other, []byte("x")); !errors.Is(err, spool.ErrUnhealthy) {
				t.Errorf("S4 later Put: %v", err)
			}
		})
	}
}
