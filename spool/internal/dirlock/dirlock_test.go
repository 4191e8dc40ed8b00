package dirlock

import (
	"errors"
	"testing"

	"example.com/svc/spool"
)

func TestSecondIsRefused(t *testing.T) {
	dir := t.TempDir()
	a, err := Acquire(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Acquire(dir); !errors.Is(err, spool.ErrLocked) {
		t.Errorf("second Acquire: %v, want ErrLocked", err)
	}
	if err := a.Release(); err != nil {
		t.Fatal(err)
	}
	b, err := Acquire(dir)
	if err != nil {
		t.Fatalf("after Release: %v", err)
	}
	if err := b.Release(); err != nil {
		t.Error(err)
	}
	if _, err := Acquire(dir + "/missing"); err == nil || errors.Is(err, spool.ErrLocked) {
		t.Errorf("missing directory: %v", err)
	}
}
