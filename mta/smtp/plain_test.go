package smtp

import (
	"bytes"
	"strings"
	"testing"
)

// plainAgrees holds that content said to be plain leaves the same with and without looking at it.
func plainAgrees(t *testing.T, stream []byte) (plain bool) {
	t.Helper()
	body, info, err := NewReader(bytes.NewReader(stream), 256).ReadData(nil, DataOptions{})
	if err != nil || !info.Plain() {
		return false
	}
	var with, without bytes.Buffer
	a, b := NewWriter(&with, 256), NewWriter(&without, 256)
	if a.WriteData(body) != nil || a.Flush() != nil || b.WritePlain(body) != nil || b.Flush() != nil {
		t.Fatal("a buffer refused a write")
	}
	if !bytes.Equal(with.Bytes(), without.Bytes()) {
		t.Fatalf("content %q is said to be plain, but leaves as %q and %q", body, with.Bytes(), without.Bytes())
	}
	return true
}

func TestPlain(t *testing.T) {
	for stream, want := range map[string]bool{
		"a: b\r\n\r\nbody\r\n.\r\n": true,
		"..\r\n.\r\n":               false,
		"a\r\n..b\r\n.\r\n":         false,
		"a\r\n.b\r\n.\r\n":          false,
		"a\rb\r\n.\r\n":             false,
		"a\nb\r\n.\r\n":             false,
		".\r\n":                     false,
		"a.\r\nb.c\r\n.\r\n":        true,
		strings.Repeat("line\r\n", 1000) + ".\r\n": true,
	} {
		if got := plainAgrees(t, []byte(stream)); got != want {
			t.Errorf("%.40q: plain is %v", stream, got)
		}
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte("a\r\n..b\r\n.\r\n"))
	f.Add([]byte("a\r\nb\r\n.\r\n"))
	f.Fuzz(func(t *testing.T, stream []byte) { plainAgrees(t, stream) })
}
