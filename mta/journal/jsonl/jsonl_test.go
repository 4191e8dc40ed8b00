package jsonl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"
)

func open(t *testing.T, cfg Config) *Writer {
	t.Helper()
	w, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lines(t *testing.T, dir string) []string {
	t.Helper()
	var got []string
	for line, err := range Dir(dir) {
		must(t, err)
		got = append(got, string(line))
	}
	return got
}

func segments(t *testing.T, dir string) []string {
	t.Helper()
	names, err := Segments(dir)
	must(t, err)
	return names
}

func writable(t *testing.T, path string) bool {
	t.Helper()
	info, err := os.Stat(path)
	must(t, err)
	return info.Mode()&writeBits != 0
}

func TestSegmentLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		w := open(t, Config{Dir: dir, Suffix: ".tsv", Header: "# head\n"})
		if len(segments(t, dir)) != 0 {
			t.Error("3.6: a segment without lines was made")
		}
		must(t, w.Flush())
		must(t, w.Rotate())
		if len(segments(t, dir)) != 0 {
			t.Error("3.6: a segment without lines was made")
		}
		must(t, w.Write([]byte("one")))
		must(t, w.Write([]byte("two\n")))
		must(t, w.Flush())
		names := segments(t, dir)
		if len(names) != 1 || names[0] != "20000101-000000.000000000.tsv" {
			t.Fatalf("3.3: segments are named %q", names)
		}
		path := filepath.Join(dir, names[0])
		if !writable(t, path) || w.Segment() != path {
			t.Error("3.4: the open segment is read-only")
		}
		want := []string{"# head", "one", "two"}
		if got := lines(t, dir); !slices.Equal(got, want) {
			t.Errorf("a reader sees %q of an open segment, want %q", got, want)
		}
		must(t, w.Write([]byte("three")))
		must(t, w.Rotate())
		if writable(t, path) {
			t.Error("3.4: the closed segment is writable")
		}
		time.Sleep(1500 * time.Millisecond)
		must(t, w.Write([]byte("four")))
		must(t, w.Close())
		if names = segments(t, dir); len(names) != 2 || names[1] != "20000101-000001.500000000.tsv" {
			t.Errorf("3.3: segments are named %q", names)
		}
		want = []string{"# head", "one", "two", "three", "# head", "four"}
		if got := lines(t, dir); !slices.Equal(got, want) {
			t.Errorf("3.9, 3.15: got %q, want %q", got, want)
		}
		plain, err := os.ReadFile(path)
		must(t, err)
		dec, err := zstd.NewReader(nil)
		must(t, err)
		defer dec.Close()
		if all, err := dec.DecodeAll(plain, nil); err != nil || string(all) != "# head\none\ntwo\nthree\n" {
			t.Errorf("3.4: the stream of a closed segment holds %q, error %v", all, err)
		}
	})
}

func TestMaxFileSize(t *testing.T) {
	dir := t.TempDir()
	w := open(t, Config{Dir: dir, MaxFileSize: 100, Header: strings.Repeat("h", 200) + "\n"})
	for i := range 25 {
		must(t, w.Write([]byte(fmt.Sprintf("line %04d", i)))) // ten bytes with its line feed
	}
	must(t, w.Close())
	names := segments(t, dir)
	if len(names) != 3 {
		t.Fatalf("3.6: %d segments, want 3", len(names))
	}
	for i, want := range []int{10, 10, 5} {
		n := -1 // the header is no record
		for _, err := range File(filepath.Join(dir, names[i])) {
			must(t, err)
			n++
		}
		if n != want {
			t.Errorf("3.6: segment %d holds %d lines, want %d", i, n, want)
		}
	}
}

func TestMaxSegmentDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		w := open(t, Config{Dir: dir, MaxSegmentDuration: time.Minute})
		must(t, w.Write([]byte("a")))
		must(t, w.Flush())
		time.Sleep(59 * time.Second)
		must(t, w.Flush())
		if w.Segment() == "" {
			t.Error("3.6: closed too early")
		}
		must(t, w.Write([]byte("b")))
		time.Sleep(time.Second)
		must(t, w.Flush())
		if w.Segment() != "" {
			t.Error("3.6: not closed after max_segment_duration")
		}
		if got := lines(t, dir); !slices.Equal(got, []string{"a", "b"}) || len(segments(t, dir)) != 1 {
			t.Errorf("got %q in %d segments", got, len(segments(t, dir)))
		}
	})
}

func TestOpenSealsOldSegments(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"old", "20200101-000000.000000001", ".hidden"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
	}
	must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o755))
	must(t, os.Symlink(filepath.Join(dir, ".hidden"), filepath.Join(dir, "link")))
	open(t, Config{Dir: dir})
	for name, want := range map[string]bool{"old": false, "20200101-000000.000000001": false, ".hidden": true, "folder": true} {
		if writable(t, filepath.Join(dir, name)) != want {
			t.Errorf("3.5: %s: writable is not %v", name, want)
		}
	}
}

func TestLazyDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	w := open(t, Config{Dir: dir, Lazy: true})
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("3.7: the directory was made before its first use: %v", err)
	}
	must(t, w.Write([]byte("x")))
	must(t, w.Close())
	if got := lines(t, dir); len(got) != 1 {
		t.Errorf("3.7: got %q", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(plain, nil, 0o644))
	for name, cfg := range map[string]Config{
		"no directory":     {},
		"separator":        {Dir: t.TempDir(), Suffix: "/../x"},
		"level":            {Dir: t.TempDir(), Level: 22},
		"negative size":    {Dir: t.TempDir(), MaxFileSize: -1},
		"directory a file": {Dir: plain},
	} {
		if _, err := Open(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLevels(t *testing.T) {
	text := bytes.Repeat([]byte("a line that repeats, and "), 400)
	for level := 0; level <= 21; level++ {
		dir := t.TempDir()
		w := open(t, Config{Dir: dir, Level: level})
		must(t, w.Write(text))
		must(t, w.Close())
		if got := lines(t, dir); len(got) != 1 || got[0] != string(text) {
			t.Errorf("level %d: line is damaged", level)
		}
	}
}

func TestRemovedWhileOpen(t *testing.T) {
	for _, what := range []string{"file", "directory", "directory replaced"} {
		t.Run(what, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "log")
			w := open(t, Config{Dir: dir})
			must(t, w.Write([]byte("gone")))
			must(t, w.Flush())
			must(t, w.Write([]byte("kept")))
			switch what {
			case "file":
				must(t, os.Remove(w.Segment()))
			case "directory":
				must(t, os.RemoveAll(dir))
			case "directory replaced":
				must(t, os.RemoveAll(dir))
				must(t, os.WriteFile(dir, nil, 0o600))
				if w.Flush() == nil || w.Pending() != 1 {
					t.Error("J1: Flush without a directory gives no error, or the line is lost")
				}
				must(t, os.Remove(dir))
			}
			must(t, w.Flush())
			must(t, w.Close())
			if got := lines(t, dir); !slices.Equal(got, []string{"kept"}) {
				t.Errorf("J1: got %q", got)
			}
		})
	}
}

// A taken name, such as one of a second process, is passed over.
func TestTakenName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a, b := open(t, Config{Dir: dir}), open(t, Config{Dir: dir})
		must(t, a.Write([]byte("a")))
		must(t, a.Flush())
		must(t, b.Write([]byte("b")))
		must(t, b.Flush())
		if a.Segment() == b.Segment() || len(segments(t, dir)) != 2 {
			t.Error("two writers share a segment")
		}
		must(t, errors.Join(a.Close(), b.Close()))
	})
}

// failingFile fails writes once budget bytes were written, as a full disk does: the last write is cut short.
type failingFile struct {
	file
	budget *int
}

var errDisk = errors.New("no space left")

func (f failingFile) Write(p []byte) (int, error) {
	if *f.budget < 0 {
		return f.file.Write(p)
	}
	n := min(len(p), *f.budget)
	*f.budget -= n
	n, err := f.file.Write(p[:n])
	if err == nil && n < len(p) {
		err = errDisk
	}
	return n, err
}

func TestFailingDisk(t *testing.T) {
	for _, budget := range []int{0, 1, 50, 300, 700, 5000} {
		t.Run(fmt.Sprint("J1 after bytes ", budget), func(t *testing.T) {
			dir := t.TempDir()
			w := open(t, Config{Dir: dir, Header: "#\n"})
			left := budget
			w.create = func(path string) (file, error) {
				f, err := createFile(path)
				return failingFile{f, &left}, err
			}
			var want []string
			failures := 0
			for i := range 200 {
				line := fmt.Sprintf("line %d %x", i, i*i*7919)
				must(t, w.Write([]byte(line)))
				want = append(want, line)
				if i%5 == 4 && w.Flush() != nil {
					failures++
				}
				if failures == 3 {
					left = -1 // space again
				}
			}
			must(t, w.Close())
			if w.Pending() != 0 {
				t.Errorf("%d lines pending after Close", w.Pending())
			}
			got := slices.DeleteFunc(lines(t, dir), func(s string) bool { return s == "#" })
			if !slices.Equal(got, want) {
				t.Errorf("J1: %d lines, want %d: lost or doubled", len(got), len(want))
			}
			for _, name := range segments(t, dir) {
				info, err := os.Stat(filepath.Join(dir, name))
				must(t, err)
				if info.Size() == 0 || info.Mode()&writeBits != 0 {
					t.Errorf("J2: %s has %d bytes, mode %v", name, info.Size(), info.Mode())
				}
			}
		})
	}
}

func TestFullWriterTakesNoLine(t *testing.T) {
	dir := t.TempDir()
	w := open(t, Config{Dir: dir})
	broken := true
	w.create = func(path string) (file, error) {
		if broken {
			return nil, errDisk
		}
		return createFile(path)
	}
	line := bytes.Repeat([]byte("x"), 100<<10)
	taken, failed := 0, false
	for range 100 {
		err := w.Write(line)
		if errors.Is(err, ErrFull) {
			if !errors.Is(err, errDisk) {
				t.Errorf("the cause is lost in %v", err)
			}
			failed = true
			break
		}
		if err != nil && !errors.Is(err, errDisk) {
			t.Fatal(err)
		}
		taken++
	}
	if !failed || w.Pending() != taken {
		t.Fatalf("took %d lines, pending %d, full %v", taken, w.Pending(), failed)
	}
	if w.Close() == nil {
		t.Error("Close hides that lines are lost")
	}
	broken = false
	must(t, w.Close())
	if got := lines(t, dir); len(got) != taken {
		t.Errorf("J1: %d lines, want %d", len(got), taken)
	}
}

func TestReaderOfCutSegments(t *testing.T) {
	dir := t.TempDir()
	w := open(t, Config{Dir: dir})
	for i := range 30 {
		must(t, w.Write([]byte(fmt.Sprintf("line %d", i))))
		must(t, w.Flush())
	}
	must(t, w.Close())
	whole, err := os.ReadFile(filepath.Join(dir, segments(t, dir)[0]))
	must(t, err)
	most := -1
	for n := range len(whole) + 1 {
		r, err := NewReader(bytes.NewReader(whole[:n]))
		must(t, err)
		count := 0
		for {
			line, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("J3: cut at %d of %d: %v", n, len(whole), err)
			}
			if want := fmt.Sprintf("line %d", count); string(line) != want {
				t.Fatalf("J3: cut at %d: got %q, want %q", n, line, want)
			}
			count++
		}
		if count < most {
			t.Errorf("cut at %d gives %d lines, less than a shorter piece", n, count)
		}
		if cut := n > 0 && n < len(whole); r.Truncated() != cut {
			t.Errorf("cut at %d of %d: truncated is %v", n, len(whole), r.Truncated())
		}
		most = max(most, count)
		r.Close()
	}
	if most != 30 {
		t.Errorf("got %d lines, want 30", most)
	}
}

func TestReaderReportsDamage(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "a"), []byte("this is no zstd stream"), 0o644))
	seen := false
	for _, err := range Dir(dir) {
		seen = err != nil && regexp.MustCompile(`/a: read segment`).MatchString(err.Error())
	}
	if !seen {
		t.Error("damage gives no error that names the file")
	}
	for _, err := range Dir(filepath.Join(dir, "none")) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
}

func TestLongLines(t *testing.T) {
	dir := t.TempDir()
	w := open(t, Config{Dir: dir})
	want := []string{strings.Repeat("a", 64<<10), "", strings.Repeat("b", 3<<20), "c"}
	for _, l := range want {
		must(t, w.Write([]byte(l)))
	}
	must(t, w.Close())
	if got := lines(t, dir); !slices.Equal(got, want) {
		t.Errorf("got %d lines", len(got))
	}
}

func FuzzReader(f *testing.F) {
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(enc.EncodeAll([]byte("a\nb\n"), nil))
	f.Add([]byte{0x28, 0xb5, 0x2f, 0xfd})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(data))
		if err != nil {
			return
		}
		defer r.Close()
		for range 1000 {
			line, err := r.Next()
			if err != nil {
				return
			}
			if bytes.IndexByte(line, '\n') >= 0 {
				t.Fatal("J3: a line holds a line feed")
			}
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	w, err := Open(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	line := make([]byte, 0, 1200)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		line = fmt.Appendf(line[:0], `{"type":"Delivery","id":"0b1f6a2cc4d711f09e5d%012x","sender":"news@send.example",`+
			`"recipient":"ann%d@dest.example","queue":"spring:acme@dest.example","size":%d,"response":{"code":250,`+
			`"enhanced_code":{"class":2,"subject":0,"detail":0},"content":"queued as %X","command":"."},"meta":{}}`,
			i*7919, i%997, 2000+i%501, i*31)
		if err := w.Write(line); err != nil {
			b.Fatal(err)
		}
		i++
	}
	b.SetBytes(int64(len(line)))
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
