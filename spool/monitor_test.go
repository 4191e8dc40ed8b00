package spool

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/svc/mta/settings"
)

func TestMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type answer struct {
			usage diskUsage
			err   error
		}
		var now atomic.Pointer[answer]
		now.Store(&answer{usage: diskUsage{50, 100, 50, 100}})
		m := NewMonitor(slog.New(slog.NewTextHandler(io.Discard, nil)))
		m.statfs = func(string) (diskUsage, error) { return now.Load().usage, now.Load().err }
		ten := settings.FreeSpace{Percent: 10, IsPercent: true}
		if err := m.Add("data", "/data", ten, ten); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- m.Run(ctx) }()

		for _, step := range []struct {
			name  string
			usage diskUsage
			err   error
			full  bool
		}{
			{"SP-10 bytes below", diskUsage{9, 100, 50, 100}, nil, true},
			{"SP-10 again enough", diskUsage{10, 100, 10, 100}, nil, false},
			{"SP-10 inodes below", diskUsage{50, 100, 9, 100}, nil, true},
			{"a failing look keeps the state", diskUsage{50, 100, 50, 100}, errors.New("gone"), true},
			{"no inode limit", diskUsage{50, 100, 0, 0}, nil, false},
			{"unknown is never full", diskUsage{}, nil, false},
		} {
			now.Store(&answer{step.usage, step.err})
			time.Sleep(checkEvery)
			synctest.Wait()
			if name, full := m.Full(); full != step.full || full && name != "data" {
				t.Errorf("%s: Full = %q, %v", step.name, name, full)
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestMonitorRealDisk(t *testing.T) {
	m := NewMonitor(nil)
	if err := m.Add("tmp", t.TempDir(), settings.FreeSpace{}, settings.FreeSpace{}); err != nil {
		t.Fatal(err)
	}
	calls := 0
	m.Each(func(name string, fb, fi uint64, pb, pi float64) {
		calls++
		if name != "tmp" || pb < 0 || pb > 100 || pi < 0 || pi > 100 {
			t.Errorf("%s %d %d %v %v", name, fb, fi, pb, pi)
		}
	})
	if _, full := m.Full(); full || calls != 1 {
		t.Errorf("full %v, calls %d", full, calls)
	}
}
