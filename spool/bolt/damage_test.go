package bolt

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"example.com/svc/spool"
)

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// filled makes a closed spool with n values of size bytes, of which the even ones
// were removed after all were stored.
func filled(t testing.TB, dir string, n, size int) []spool.ID {
	t.Helper()
	s := openTest(t, dir, Options{PageSize: 4096, NoSync: true})
	ids := spool.NewIDs()
	var items []spool.Item
	var gone, kept []spool.ID
	for i := range n {
		it := spool.Item{ID: ids.Next(), Value: bytes.Repeat([]byte{byte(i)}, size)}
		items = append(items, it)
		if i%2 == 0 {
			gone = append(gone, it.ID)
		} else {
			kept = append(kept, it.ID)
		}
	}
	if err := errors.Join(s.PutBatch(t.Context(), items), s.DeleteBatch(t.Context(), gone), s.Close()); err != nil {
		t.Fatal(err)
	}
	return kept
}

// survivors opens the spool and counts which of ids are there and intact.
func survivors(t testing.TB, dir string, ids []spool.ID) (there int, s *Spool) {
	t.Helper()
	s = openTest(t, dir, Options{PageSize: 4096, Log: quiet()})
	found := map[spool.ID]bool{}
	for it, err := range s.Values(t.Context()) {
		if err != nil {
			t.Logf("Values: %v", err)
			continue
		}
		found[it.ID] = true
	}
	for _, id := range ids {
		if found[id] {
			there++
		}
	}
	return there, s
}

func wantDamagedFile(t *testing.T, dir string, want bool) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, dbName+".damaged-*"))
	if err != nil || (len(names) > 0) != want {
		t.Errorf("damaged files: %v, %v", names, err)
	}
}

func TestSalvage(t *testing.T) {
	const n, size = 400, 700
	for _, tc := range []struct {
		name string
		lose int // at most
		// damage changes the bytes of the file, pages of 4096
		damage func(b []byte) []byte
	}{
		{"S3 both meta pages", 0, func(b []byte) []byte { clear(b[:2*4096]); return b }},
		{"S3 every branch page", 0, func(b []byte) []byte {
			for at := 2 * 4096; at+4096 <= len(b); at += 4096 {
				if order.Uint16(b[at+8:]) == kindBranch {
					clear(b[at : at+4096])
				}
			}
			return b
		}},
		{"S3 one leaf page", 10, func(b []byte) []byte {
			for at := len(b) - 4096; at > 0; at -= 4096 {
				if order.Uint16(b[at+8:]) == kindLeaf && order.Uint16(b[at+10:]) > 2 {
					order.PutUint16(b[at+10:], 0xffff)
					return b
				}
			}
			return b
		}},
		{"S3 cut in the middle", n / 2, func(b []byte) []byte { return b[:len(b)/2] }},
		{"S3 nothing but noise", n / 2, func(b []byte) []byte {
			for i := range b {
				b[i] = byte(i * 31)
			}
			return b
		}},
		{"S3 short file", n / 2, func(b []byte) []byte { return b[:100] }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			ids := filled(t, dir, n, size)
			file := filepath.Join(dir, dbName)
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, tc.damage(b), 0o600); err != nil {
				t.Fatal(err)
			}
			there, s := survivors(t, dir, ids)
			defer s.Close()
			if there < len(ids)-tc.lose {
				t.Errorf("%d of %d values survive, want all but %d", there, len(ids), tc.lose)
			}
			wantDamagedFile(t, dir, true)
			t.Logf("%d of %d survive, %+v", there, len(ids), s.Stats())
			id := spool.NewIDs().Next()
			if err := s.Put(t.Context(), id, []byte("new")); err != nil {
				t.Errorf("the salvaged spool takes no value: %v", err)
			}
		})
	}
}

func TestOneBadMetaIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	ids := filled(t, dir, 50, 700)
	file := filepath.Join(dir, dbName)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	older := 0 // the meta page of the older transaction
	if order.Uint64(b[4096+pageHeader+48:]) < order.Uint64(b[pageHeader+48:]) {
		older = 4096
	}
	clear(b[older : older+100])
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	there, s := survivors(t, dir, ids)
	defer s.Close()
	if there != len(ids) {
		t.Errorf("%d of %d values survive", there, len(ids))
	}
	wantDamagedFile(t, dir, false)
}

// TestRandomDamage changes bytes at random. Whatever the result, opening works,
// no value is returned changed (S3), and most of the others survive.
func TestRandomDamage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	dir := t.TempDir()
	ids := filled(t, dir, 300, 600)
	file := filepath.Join(dir, dbName)
	intact, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for range 15 {
		b := bytes.Clone(intact)
		for range 3 {
			b[rnd.IntN(len(b))] ^= byte(1 + rnd.IntN(255))
			at := rnd.IntN(len(b)-16) &^ 4095 // and in the headers, where it hurts
			b[at+8+rnd.IntN(8)] ^= byte(1 << rnd.IntN(8))
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		there, s := survivors(t, dir, ids)
		if there < len(ids)-60 {
			t.Errorf("%d of %d values survive", there, len(ids))
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// TestFileShrinksUnderUs faults in the memory map, which must not end the process.
func TestFileShrinksUnderUs(t *testing.T) {
	dir := t.TempDir()
	ids := filled(t, dir, 400, 700)
	s := openTest(t, dir, Options{PageSize: 4096, Log: quiet()})
	if err := os.Truncate(s.file, 2*4096); err != nil {
		t.Fatal(err)
	}
	var corrupt *spool.CorruptError
	if _, err := s.Get(t.Context(), ids[0]); !errors.As(err, &corrupt) {
		t.Errorf("Get: %v", err)
	}
	var last error
	for _, last = range s.All(t.Context()) {
	}
	if !errors.As(last, &corrupt) {
		t.Errorf("All: %v", last)
	}
	// The log still takes values. What writes to the database learns of the damage.
	if err := s.Quarantine(t.Context(), ids[0], ""); !errors.Is(err, spool.ErrUnhealthy) || !errors.As(err, &corrupt) {
		t.Errorf("Quarantine: %v", err)
	}
	if err := s.Put(t.Context(), ids[0], nil); !errors.Is(err, spool.ErrUnhealthy) || !errors.As(err, &corrupt) {
		t.Errorf("Put: %v", err)
	}
	_ = s.Close() // must return
}

func FuzzSalvage(f *testing.F) {
	dir := f.TempDir()
	filled(f, dir, 12, 300)
	intact, err := os.ReadFile(filepath.Join(dir, dbName))
	if err != nil {
		f.Fatal(err)
	}
	intact = bytes.TrimRight(intact, "\x00")
	f.Add(uint32(0), []byte{1})
	f.Add(uint32(3*4096), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Fuzz(func(t *testing.T, at uint32, patch []byte) {
		b := bytes.Clone(intact)
		copy(b[int(at)%len(b):], patch)
		db, err := openPages(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		w := &walker{f: db, seen: make(map[uint64]bool)}
		if err := w.buckets(func(_ []byte, l leaf) error { _, err := l.value(); return err }); err != nil {
			t.Errorf("walk: %v", err)
		}
	})
}
