package smtp

import (
	"strings"
	"testing"
)

func TestAppendCRLF(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a": "a", "a\r\nb": "a\r\nb", "a\nb\rc": "a\r\nb\r\nc", "\r\r\n\n": "\r\n\r\n\r\n", "\n\r": "\r\n\r\n",
	} {
		if got := string(AppendCRLF([]byte("x"), []byte(in))); got != "x"+want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestShrink(t *testing.T) {
	r := NewReader(strings.NewReader(strings.Repeat("x", 5000)+"\r\nNOOP\r\n"), 0)
	if _, err := r.ReadLine(10_000); err != nil {
		t.Fatal(err)
	}
	big := len(r.buf)
	if r.Shrink(0); r.Buffered() > 0 && len(r.buf) != big {
		t.Error("what was buffered is gone")
	}
	if line, err := r.ReadLine(100); err != nil || string(line) != "NOOP" {
		t.Fatalf("%q %v", line, err)
	}
	if r.Shrink(0); len(r.buf) != minReader {
		t.Errorf("%d bytes stay", len(r.buf))
	}
}
