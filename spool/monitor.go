package spool

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"example.com/svc/mta/settings"
)

// checkEvery is how often disks are looked at (flows SP-10).
const checkEvery = 5 * time.Second

// Monitor watches the free space and inodes of the disks under paths. Make one
// with [NewMonitor]; its methods are safe for use by many goroutines.
type Monitor struct {
	log    *slog.Logger
	statfs func(path string) (diskUsage, error)

	mu    sync.Mutex // protects disks
	disks []*disk
	full  atomic.Pointer[string] // name of a full disk
}

// diskUsage is what a file system says about itself. Total inodes are 0 where it
// has no such limit.
type diskUsage struct {
	freeBytes, totalBytes   uint64
	freeInodes, totalInodes uint64
}

type disk struct {
	name, path            string
	minSpace, minInodes   settings.FreeSpace
	usage                 diskUsage
	full, failed, checked bool
}

// NewMonitor returns a monitor of no paths. A nil log means slog.Default.
func NewMonitor(log *slog.Logger) *Monitor {
	if log == nil {
		log = slog.Default()
	}
	return &Monitor{log: log, statfs: statfs}
}

// Add watches path under name, looks at it at once, and returns an error when
// that is not possible. A name that is watched already is replaced.
func (m *Monitor) Add(name, path string, minSpace, minInodes settings.FreeSpace) error {
	usage, err := m.statfs(path)
	if err != nil {
		return fmt.Errorf("look at the disk of %s: %w", name, err)
	}
	d := &disk{name: name, path: path, minSpace: minSpace, minInodes: minInodes}
	m.mu.Lock()
	defer m.mu.Unlock()
	replaced := false
	for i, old := range m.disks {
		if old.name == name {
			m.disks[i], replaced = d, true
		}
	}
	if !replaced {
		m.disks = append(m.disks, d)
	}
	m.note(d, usage)
	m.publish()
	return nil
}

// Run looks at all disks every 5 seconds (flows SP-10) until ctx ends, and
// returns nil then.
func (m *Monitor) Run(ctx context.Context) error {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			m.checkAll()
		}
	}
}

// Full reports whether a disk is below its minimum, and the name it is watched
// under. It is one atomic read, fit for every accept.
func (m *Monitor) Full() (name string, full bool) {
	if p := m.full.Load(); p != nil {
		return *p, true
	}
	return "", false
}

// Each calls fn with the last known values of every path: free bytes and inodes,
// and both as a percentage of the whole. The percentage of inodes is 100 where
// the file system does not limit them.
func (m *Monitor) Each(fn func(name string, freeBytes, freeInodes uint64, pctBytes, pctInodes float64)) {
	m.mu.Lock()
	disks := make([]disk, 0, len(m.disks))
	for _, d := range m.disks {
		disks = append(disks, *d)
	}
	m.mu.Unlock()
	for _, d := range disks {
		if !d.checked {
			continue
		}
		u := d.usage
		fn(d.name, u.freeBytes, u.freeInodes, percent(u.freeBytes, u.totalBytes), percent(u.freeInodes, u.totalInodes))
	}
}

func percent(part, whole uint64) float64 {
	if whole == 0 {
		return 100
	}
	return float64(part) / float64(whole) * 100
}

func (m *Monitor) checkAll() {
	m.mu.Lock()
	disks := append([]*disk(nil), m.disks...)
	m.mu.Unlock()
	for _, d := range disks {
		usage, err := m.statfs(d.path) // may hang on a network disk: no lock held
		m.mu.Lock()
		if err != nil {
			if !d.failed {
				m.log.Error("cannot look at a disk, keeping its last values", "name", d.name, "path", d.path, "error", err)
			}
			d.failed = true
		} else {
			d.failed = false
			m.note(d, usage)
		}
		m.publish()
		m.mu.Unlock()
	}
}

// note stores usage in d; mu is held.
func (m *Monitor) note(d *disk, u diskUsage) {
	full := !d.minSpace.Enough(u.freeBytes, u.totalBytes) ||
		u.totalInodes > 0 && !d.minInodes.Enough(u.freeInodes, u.totalInodes)
	if u == (diskUsage{}) {
		full = false // the system does not tell
	}
	if full != d.full {
		m.log.Warn("disk space changed", "name", d.name, "path", d.path, "full", full,
			"free_bytes", u.freeBytes, "free_inodes", u.freeInodes)
	}
	d.usage, d.full, d.checked = u, full, true
}

// publish sets what Full answers; mu is held.
func (m *Monitor) publish() {
	for _, d := range m.disks {
		if d.full {
			m.full.Store(&d.name)
			return
		}
	}
	m.full.Store(nil)
}
