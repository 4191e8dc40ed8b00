package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"example.com/svc/spool"
)

// crashed returns a copy of the directory of an open spool, as a crash now would
// leave it.
func crashed(t *testing.T, s *Spool) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// content reads all values, of which none may be damaged.
func content(t *testing.T, s *Spool) map[spool.ID]string {
	t.Helper()
	got := map[spool.ID]string{}
	for it, err := range s.Values(t.Context()) {
		if err != nil {
			t.Fatalf("Values: %v", err)
		}
		got[it.ID] = string(it.Value)
	}
	return got
}

func wantContent(t *testing.T, s *Spool, want map[spool.ID]string) {
	t.Helper()
	got := content(t, s)
	for id, v := range want {
		if got[id] != v {
			t.Errorf("%s has %.20q, want %.20q", id, got[id], v)
		}
	}
	for id := range got {
		if _, ok := want[id]; !ok {
			t.Errorf("%s came back", id)
		}
	}
}

// fileOf returns the only file of the log in dir.
func fileOf(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, logPrefix+"*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files of the log: %v, %v", names, err)
	}
	return names[0]
}

func mustPut(t *testing.T, s *Spool, id spool.ID, value string) {
	t.Helper()
	if err := s.Put(t.Context(), id, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func mustDelete(t *testing.T, s *Spool, ids ...spool.ID) {
	t.Helper()
	if err := s.DeleteBatch(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
}

func TestLogIsReplayed(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Log: quiet()})
	ids := spool.NewIDs()
	stored, replaced, removed, again := ids.Next(), ids.Next(), ids.Next(), ids.Next()
	for _, id := range []spool.ID{stored, replaced, removed, again} {
		mustPut(t, s, id, "first "+id.String())
	}
	if err := s.Close(); err != nil { // all of it is in the database now
		t.Fatal(err)
	}
	if names, _ := filepath.Glob(filepath.Join(s.dir, logPrefix+"*")); len(names) != 0 {
		t.Errorf("the log stays after Close: %v", names)
	}
	s = openTest(t, s.dir, Options{Log: quiet()})
	defer s.Close()
	fresh, gone := ids.Next(), ids.Next()
	mustPut(t, s, replaced, "second")
	mustDelete(t, s, removed, again)
	mustPut(t, s, again, "third")
	mustPut(t, s, fresh, "fresh")
	mustPut(t, s, gone, "gone")
	mustDelete(t, s, gone)
	want := map[spool.ID]string{stored: "first " + stored.String(), replaced: "second", again: "third", fresh: "fresh"}
	wantContent(t, s, want)
	for range 2 { // S1, S2: and a crash right after the replay changes nothing
		c := openTest(t, crashed(t, s), Options{Log: quiet()})
		wantContent(t, c, want)
		if err := s.Quarantine(t.Context(), ids.Next(), ""); !errors.Is(err, spool.ErrNotFound) {
			t.Fatal(err) // moves the log to the database, and leaves its files
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQuarantineOutlivesTheLog(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Log: quiet()})
	defer s.Close()
	ids := spool.NewIDs()
	bad, kept := ids.Next(), ids.Next()
	mustPut(t, s, bad, "bad")
	mustPut(t, s, kept, "first")
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Quarantine(context.Background(), bad, "test"); err != nil {
			t.Errorf("Quarantine: %v", err)
		}
	})
	wg.Go(func() {
		if err := s.Put(context.Background(), kept, []byte("second")); err != nil {
			t.Errorf("Put: %v", err)
		}
	})
	wg.Wait()
	c := openTest(t, crashed(t, s), Options{Log: quiet()})
	defer c.Close()
	wantContent(t, c, map[spool.ID]string{kept: "second"})
	if n, err := c.Quarantined(t.Context()); n != 1 || err != nil {
		t.Errorf("Quarantined = %d, %v", n, err)
	}
}

func TestTornAndDamagedLog(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Log: quiet()})
	defer s.Close()
	ids := spool.NewIDs()
	var list []spool.ID
	for range 3 {
		list = append(list, ids.Next())
		mustPut(t, s, list[len(list)-1], string(bytes.Repeat([]byte("v"), 5000)))
	}
	const batch = 8192 // what each of the three takes
	for name, tc := range map[string]struct {
		damage func(b []byte) []byte
		gone   []int // of list
		bad    int   // -1 for none
	}{
		"last frame torn":           {func(b []byte) []byte { clear(b[2*batch+4096:]); return b }, []int{2}, -1},
		"last head torn":            {func(b []byte) []byte { clear(b[2*batch : 2*batch+512]); return b }, []int{2}, -1},
		"end missing":               {func(b []byte) []byte { return b[:2*batch+4096] }, []int{2}, -1},
		"S3 frame in the middle":    {func(b []byte) []byte { b[batch+5000] ^= 1; return b }, nil, 1},
		"S3 head in the middle":     {func(b []byte) []byte { b[batch+20] ^= 1; return b }, []int{1}, -1},
		"old frame of another size": {func(b []byte) []byte { copy(b[2*batch+80:], b[80:5080]); return b }, nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := crashed(t, s)
			file := fileOf(t, dir)
			b, err := os.ReadFile(file)
			if err != nil || len(b) != 3*batch {
				t.Fatalf("log of %d bytes, %v", len(b), err)
			}
			if err := os.WriteFile(file, tc.damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			c := openTest(t, dir, Options{Log: quiet()})
			defer c.Close()
			for i, id := range list {
				_, err := c.Get(t.Context(), id)
				var corrupt *spool.CorruptError
				switch {
				case slices.Contains(tc.gone, i):
					if !errors.Is(err, spool.ErrNotFound) {
						t.Errorf("record %d: %v, want none", i, err)
					}
				case i == tc.bad:
					if !errors.As(err, &corrupt) {
						t.Errorf("record %d: %v, want damage", i, err)
					}
				case err != nil:
					t.Errorf("S1 record %d: %v", i, err)
				}
			}
		})
	}
}

// TestLogFilesAreUsedAgain passes many values through: the files stay few, and a
// crash brings nothing back that was removed before.
func TestLogFilesAreUsedAgain(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Log: quiet(), NoSync: true})
	defer s.Close()
	ids := spool.NewIDs()
	kept := map[spool.ID]string{}
	value := string(make([]byte, 100<<10))
	var old []spool.ID
	for i := range 1200 { // 120 MB
		id := ids.Next()
		mustPut(t, s, id, value)
		if old = append(old, id); len(old) > 20 {
			mustDelete(t, s, old[0])
			old = old[1:]
		}
		if i%400 == 399 {
			want := map[spool.ID]string{}
			for _, id := range old {
				want[id] = value
			}
			c := openTest(t, crashed(t, s), Options{Log: quiet()})
			wantContent(t, c, want)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, id := range old {
		kept[id] = value
	}
	wantContent(t, s, kept)
	names, err := filepath.Glob(filepath.Join(s.dir, logPrefix+"*"))
	if err != nil || len(names) > 4 {
		t.Errorf("%d files for at most 21 values of 100 KB, %v", len(names), err)
	}
}

// TestFullLogMoves stores more records than the log may hold.
func TestFullLogMoves(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Log: quiet(), NoSync: true})
	defer s.Close()
	ids := spool.NewIDs()
	want := map[spool.ID]string{}
	for i := range 2*logRecords/500 + 1 {
		var items []spool.Item
		for j := range 500 {
			it := spool.Item{ID: ids.Next(), Value: fmt.Appendf(make([]byte, 0, 300), "%d %d %250d", i, j, i)}
			items = append(items, it)
			want[it.ID] = string(it.Value)
		}
		if err := s.PutBatch(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 {
			mustDelete(t, s, items[0].ID)
			delete(want, items[0].ID)
		}
	}
	// A value both in the log and in the database, and one removed from it.
	var oldest []spool.ID
	for id := range s.All(t.Context()) {
		if oldest = append(oldest, id); len(oldest) == 2 {
			break
		}
	}
	mustPut(t, s, oldest[0], "new")
	mustDelete(t, s, oldest[1])
	want[oldest[0]] = "new"
	delete(want, oldest[1])
	s.log.mu.RLock()
	n := len(s.log.index)
	s.log.mu.RUnlock()
	if n > logRecords+1000 {
		t.Errorf("%d records in the log, want about %d", n, logRecords)
	}
	wantContent(t, s, want)
	c := openTest(t, crashed(t, s), Options{Log: quiet()})
	defer c.Close()
	wantContent(t, c, want)
	var order []spool.ID
	for id, err := range c.All(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		order = append(order, id)
	}
	if len(order) != len(want) || !slices.IsSortedFunc(order, spool.ID.Compare) {
		t.Errorf("All yields %d of %d, or not in order", len(order), len(want))
	}
}

func TestFailedLogFlushRefusesWrites(t *testing.T) {
	var on atomic.Bool
	s := openTest(t, t.TempDir(), Options{Log: quiet(), flush: func(f *os.File) error {
		if on.Load() {
			return syscall.EIO
		}
		return flushData(f)
	}})
	ids := spool.NewIDs()
	a, b := ids.Next(), ids.Next()
	mustPut(t, s, a, "a")
	on.Store(true)
	if err := s.Put(t.Context(), b, nil); !errors.Is(err, spool.ErrUnhealthy) || !errors.Is(err, syscall.EIO) {
		t.Errorf("S1 Put with a failing flush: %v", err)
	}
	on.Store(false)
	if err := s.Delete(t.Context(), a); !errors.Is(err, spool.ErrUnhealthy) {
		t.Errorf("S4 Delete: %v", err)
	}
	if got := content(t, s); got[a] != "a" { // reading goes on
		t.Errorf("Values: %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, s.dir, Options{Log: quiet()})
	defer s.Close()
	if v, err := s.Get(t.Context(), a); err != nil || string(v) != "a" {
		t.Errorf("S1 after a restart: %q, %v", v, err)
	}
}

func TestFullDiskOfTheLog(t *testing.T) {
	var on atomic.Bool
	s := openTest(t, t.TempDir(), Options{Log: quiet(), probeEvery: 1, OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
		if on.Load() && filepath.Base(name) != dbName {
			return nil, &os.PathError{Op: "write", Path: name, Err: syscall.ENOSPC}
		}
		return os.OpenFile(name, flag, perm)
	}})
	defer s.Close()
	ids := spool.NewIDs()
	a := ids.Next()
	mustPut(t, s, a, "a")
	on.Store(true)
	if err := s.Put(t.Context(), ids.Next(), make([]byte, logSegment)); !errors.Is(err, spool.ErrFull) {
		t.Errorf("Put that needs another file: %v", err)
	}
	if err := s.Delete(t.Context(), a); err != nil {
		t.Errorf("Delete on a full disk: %v", err)
	}
	on.Store(false)
	for s.Health() != nil && t.Context().Err() == nil {
		mustDelete(t, s, a) // passes the time
	}
	mustPut(t, s, a, "again")
	if v, err := s.Get(context.Background(), a); err != nil || string(v) != "again" {
		t.Errorf("Get: %q, %v", v, err)
	}
}

func FuzzReadBatch(f *testing.F) {
	p := newFrame([]byte("value"))
	o := &op{entries: []entry{{key: [16]byte{1}, frame: p}, {key: [16]byte{2}}}}
	h := batchHead{salt: 1, seq: 2, number: 3, floor: 2, count: 2, length: logHeader + 2*logEntry + int64(len(*p))}
	good := append(appendHead(nil, h, []*op{o}), *p...)
	if got, entries, ok := readBatch(bytes.NewReader(good), 0, int64(len(good))); !ok || got != h || len(entries) != 2 {
		f.Fatalf("%+v %v %v", got, entries, ok)
	}
	f.Add(good)
	f.Add(good[:logHeader])
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &image{size: int64(len(b))}
		m.scan(bytes.NewReader(b))
		_, entries, ok := readBatch(bytes.NewReader(b), 0, int64(len(b)))
		if ok != (len(m.batches) > 0) {
			t.Errorf("one batch: %v, all: %v", ok, m.batches)
		}
		for _, e := range entries {
			if e.off < logHeader || e.off+int64(e.size) > int64(len(b)) {
				t.Errorf("frame outside of the file: %+v", e)
			}
		}
	})
}
