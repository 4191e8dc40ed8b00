package smtp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// pieces gives out data in pieces of n bytes.
type pieces struct {
	data []byte
	n    int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.n)], p.data)
	p.data = p.data[n:]
	return n, nil
}

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []struct {
		name, in string
		max      int
		want     []string // "!" before an overlong line
		err      error
	}{
		{"W1 CRLF only", "a\r\nb\nc\r\nd\re\r\n", 100, []string{"a", "b\nc", "d\re"}, io.EOF},
		{"empty lines", "\r\n\r\n", 10, []string{"", ""}, io.EOF},
		{"LF first", "\n\r\n", 10, []string{"\n"}, io.EOF},
		{"CR CR LF", "a\r\r\n", 10, []string{"a\r"}, io.EOF},
		{"exactly max", long + "\r\nb\r\n", 300, []string{long, "b"}, io.EOF},
		{"one over max", long + "\r\nb\r\n", 299, []string{"!" + long[:299], "b"}, io.EOF},
		{"far over max", strings.Repeat("y", 5000) + "\r\nb\r\n", 10, []string{"!yyyyyyyyyy", "b"}, io.EOF},
		{"over max with lone ends", long + "\n\r" + long + "\r\nb\r\n", 10, []string{"!" + long[:10], "b"}, io.EOF},
		{"cut off", "abc", 10, nil, io.ErrUnexpectedEOF},
		{"cut off after CR", "abc\r", 10, nil, io.ErrUnexpectedEOF},
		{"W2 endless", strings.Repeat("z", 200_000), 100, nil, ErrLineEndless},
	}
	for _, tt := range tests {
		for _, n := range []int{1, 2, 3, 7, 256, 1 << 20} {
			t.Run(tt.name, func(t *testing.T) {
				r := NewReader(&pieces{[]byte(tt.in), n}, 0)
				got, err := allLines(r, tt.max)
				if !errors.Is(err, tt.err) || !equal(got, tt.want) {
					t.Fatalf("pieces of %d: got %q, %v", n, got, err)
				}
			})
		}
	}
}

func allLines(r *Reader, max int) (got []string, err error) {
	for {
		line, err := r.ReadLine(max)
		switch {
		case errors.Is(err, ErrLineTooLong):
			got = append(got, "!"+string(line))
		case err != nil:
			return got, err
		default:
			got = append(got, string(line))
		}
	}
}

func equal(a, b []string) bool {
	return strings.Join(a, "\x00") == strings.Join(b, "\x00") && len(a) == len(b)
}

func TestReadLineAfterTimeout(t *testing.T) {
	r := NewReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("a\r\n"))), 0)
	if _, err := r.ReadLine(10); !errors.Is(err, iotest.ErrTimeout) {
		t.Fatalf("got %v", err)
	}
	line, err := r.ReadLine(10)
	if err != nil || string(line) != "a" {
		t.Fatalf("got %q, %v", line, err)
	}
}

func TestHasLineAndDiscard(t *testing.T) {
	r := NewReader(strings.NewReader("STARTTLS\r\nNOOP\r\nQU"), 0)
	if _, err := r.ReadLine(100); err != nil || !r.HasLine() {
		t.Fatal("a second line is buffered", err)
	}
	if n := r.Discard(); n != 8 || r.HasLine() || r.Buffered() != 0 {
		t.Fatalf("discarded %d", n)
	}
}

func TestReadFull(t *testing.T) {
	r := NewReader(&pieces{[]byte("LINE\r\n0123456789rest\r\n"), 9}, 0)
	if _, err := r.ReadLine(100); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	if err := r.ReadFull(p); err != nil || string(p) != "0123456789" {
		t.Fatalf("%q %v", p, err)
	}
	if line, err := r.ReadLine(100); err != nil || string(line) != "rest" {
		t.Fatalf("%q %v", line, err)
	}
	if err := r.ReadFull(p); err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
}

// FuzzReadLine compares with a reader that goes byte by byte.
func FuzzReadLine(f *testing.F) {
	f.Add([]byte("EHLO a\r\nb\rc\nd\r\n\r\nlong line here\r\n"), uint8(5), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, limit, piece uint8) {
		m := int(limit)
		var want []string
		var line []byte
		for i := 0; i < len(in); i++ {
			if in[i] == '\n' && len(line) > 0 && line[len(line)-1] == '\r' {
				line = line[:len(line)-1]
				if len(line) > m {
					want = append(want, "!"+string(line[:m]))
				} else {
					want = append(want, string(line))
				}
				line = line[:0]
				continue
			}
			line = append(line, in[i])
		}
		got, err := allLines(NewReader(&pieces{in, int(piece) + 1}, 0), m)
		if len(in) < MaxDiscard && !equal(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		if err != io.EOF && err != io.ErrUnexpectedEOF && err != ErrLineEndless {
			t.Fatal(err)
		}
	})
}

var _ io.Writer = (*Writer)(nil)

func BenchmarkReadLine(b *testing.B) {
	line := []byte("RCPT TO:<someone@some.example.com>\r\n")
	in := bytes.Repeat(line, 1000)
	src := bytes.NewReader(nil)
	r := NewReader(src, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	for i := 0; b.Loop(); i++ {
		if i%1000 == 0 {
			src.Reset(in)
		}
		if _, err := r.ReadLine(998); err != nil {
			b.Fatal(err)
		}
	}
}
