package smtp

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
)

// naiveData undoes RFC 5321 section 4.5.2 one byte at a time. It returns the content, what follows the end, and
// whether the end came.
func naiveData(in []byte, maxLine int) (content, rest []byte, info DataInfo, ok bool) {
	bol := true
	n := 0
	for i := 0; i < len(in); i++ {
		if bol && in[i] == '.' {
			if bytes.HasPrefix(in[i:], []byte(".\r\n")) {
				info.Size = int64(len(content))
				return content, in[i+3:], info, true
			}
			bol = false
			n = 0
			info.Dots = true
			continue
		}
		c := in[i]
		bol = c == '\n' && i > 0 && in[i-1] == '\r'
		switch {
		case c == '\n':
			if bol {
				n--
			} else {
				info.BareLF = true
			}
			if maxLine > 0 && n > maxLine {
				info.LineTooLong = true
			}
			n = 0
		case c == '\r' && (i+1 == len(in) || in[i+1] != '\n'):
			info.BareCR = true
			n++
		default:
			n++
		}
		if c >= 0x80 {
			info.Has8bit = true
		}
		content = append(content, c)
	}
	return nil, nil, info, false
}

func checkData(t *testing.T, in []byte, piece, chunk, maxLine int, maxSize int64) {
	t.Helper()
	want, rest, wantInfo, ok := naiveData(in, maxLine)
	r := NewReader(&pieces{in, piece}, 0)
	got, info, err := r.ReadData([]byte("front"), DataOptions{Chunk: chunk, MaxLine: maxLine, MaxSize: maxSize})
	if !bytes.HasPrefix(got, []byte("front")) {
		t.Fatalf("%q: what stood in dst is gone: %q", in, got)
	}
	if !ok {
		if err != io.ErrUnexpectedEOF || len(got) != 5 {
			t.Fatalf("%q has no end, got %q, %v", in, got, err)
		}
		return
	}
	if maxSize > 0 && int64(len(want)) > maxSize {
		wantInfo.TooBig, want = true, nil
	}
	if err != nil || !bytes.Equal(got[5:], want) || info != wantInfo {
		t.Fatalf("%q in pieces of %d: got %q %+v %v, want %q %+v", in, piece, got[5:], info, err, want, wantInfo)
	}
	left := make([]byte, len(rest))
	if err := r.ReadFull(left); err != nil || !bytes.Equal(left, rest) {
		t.Fatalf("%q: after the end came %q, want %q", in, left, rest)
	}
}

// TestEndOfData tries every way to surround a dot with CR, LF, CRLF and nothing: only CRLF.CRLF may end (W1).
func TestEndOfData(t *testing.T) {
	ends := []string{"", "\r", "\n", "\r\n", "\n\r", "\r\r", "\n\n", "\r\r\n", "\r\n\r", "\r\n\n", "\x00\r\n", " \r\n", "\r\n "}
	for _, before := range ends {
		for _, after := range ends {
			in := []byte("a" + before + "." + after + "b\r\n.\r\nQUIT\r\n")
			t.Run(fmt.Sprintf("%q", before+"."+after), func(t *testing.T) {
				for _, piece := range []int{1, 2, 3, 5, 1000} {
					checkData(t, in, piece, 0, 0, 0)
				}
				_, rest, _, _ := naiveData(in, 0)
				ended := string(rest) != "QUIT\r\n"
				legal := strings.HasSuffix(before, "\r\n") && strings.HasPrefix(after, "\r\n")
				if ended != legal {
					t.Fatalf("ended early: %v, legal: %v", ended, legal)
				}
			})
		}
	}
}

func TestReadDataLimits(t *testing.T) {
	body := strings.Repeat(strings.Repeat("x", 98)+"\r\n", 1000)
	for _, maxSize := range []int64{0, 1, 50_000, 99_999, 100_000, 100_001} {
		for _, piece := range []int{7, 1000, 1 << 20} {
			checkData(t, []byte(body+".\r\nNOOP\r\n"), piece, 512, 98, maxSize)
			checkData(t, []byte(body+".\r\nNOOP\r\n"), piece, 512, 97, maxSize)
		}
	}
}

func TestReadDataMemoryIsBounded(t *testing.T) {
	in := append(bytes.Repeat([]byte("0123456789abcd\r\n"), 1<<18), ".\r\n"...) // 4 MiB
	r := NewReader(bytes.NewReader(in), 0)
	dst, info, err := r.ReadData(nil, DataOptions{MaxSize: 1000})
	if err != nil || !info.TooBig || len(dst) != 0 || info.Size != 4<<20 {
		t.Fatalf("%d %+v %v", len(dst), info, err)
	}
	if cap(dst) > 4*defaultChunk {
		t.Fatalf("kept %d bytes of memory", cap(dst))
	}
}

func FuzzReadData(f *testing.F) {
	f.Add([]byte("a\r\n..b\r\n.\r\nQUIT\r\n"), uint8(1), uint8(0), uint16(0), uint16(0))
	f.Add([]byte("a\n.\r\nb\r.\r\n\r\n.\r\r\n.\n.\r\n.\r\n"), uint8(3), uint8(4), uint16(2), uint16(5))
	f.Add([]byte(".\r\n"), uint8(2), uint8(9), uint16(0), uint16(1))
	f.Fuzz(func(t *testing.T, in []byte, piece, chunk uint8, maxLine, maxSize uint16) {
		checkData(t, in, int(piece)+1, int(chunk)+1, int(maxLine), int64(maxSize))
	})
}

func TestWriteData(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"empty", "", ".\r\n"},
		{"SC-18 last CRLF", "a", "a\r\n.\r\n"},
		{"plain", "a\r\nb\r\n", "a\r\nb\r\n.\r\n"},
		{"dots", ".\r\n..\r\na.\r\n.b", "..\r\n...\r\na.\r\n..b\r\n.\r\n"},
		{"W3 bare LF", "a\nb\n\n.\nc", "a\r\nb\r\n\r\n..\r\nc\r\n.\r\n"},
		{"W3 bare CR", "a\rb\r\r\n.\r.\rQUIT\r", "a\r\nb\r\n\r\n..\r\n..\r\nQUIT\r\n.\r\n"},
		{"W3 as many CR as LF", "a\rb\r\nc\nd\r\n", "a\r\nb\r\nc\r\nd\r\n.\r\n"},
		{"dots without last CRLF", "a\r\n.b\r\n.", "a\r\n..b\r\n..\r\n.\r\n"},
		{"clean without last CRLF", "a\r\nb", "a\r\nb\r\n.\r\n"},
		{"only ends", "\n\r\n\r", "\r\n\r\n\r\n.\r\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			w := NewWriter(&b, 0)
			if err := w.WriteData([]byte(tt.in)); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(); err != nil || b.String() != tt.want {
				t.Fatalf("got %q, want %q, %v", b.String(), tt.want, err)
			}
		})
	}
}

// FuzzWriteData: whatever goes out is read back as one content with CRLF ends, equal when it had CRLF ends already.
func FuzzWriteData(f *testing.F) {
	f.Add([]byte(".\r\n.\n.\r.a\r\n..\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var b bytes.Buffer
		w := NewWriter(&b, 0)
		if w.WriteData(in) != nil || w.WriteLine("NEXT") != nil || w.Flush() != nil {
			t.Fatal("write failed")
		}
		r := NewReader(&b, 0)
		got, info, err := r.ReadData(nil, DataOptions{})
		if err != nil || info.BareCR || info.BareLF {
			t.Fatalf("%q: %+v %v", in, info, err)
		}
		if line, err := r.ReadLine(10); err != nil || string(line) != "NEXT" {
			t.Fatalf("%q: out of step: %q", in, line)
		}
		norm := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(in))
		if norm != "" && !strings.HasSuffix(norm, "\n") {
			norm += "\n"
		}
		if want := strings.ReplaceAll(norm, "\n", "\r\n"); string(got) != want {
			t.Fatalf("%q: got %q, want %q", in, got, want)
		}
	})
}

func mailBody(size int) []byte {
	line := []byte(strings.Repeat("abcdefgh. ", 7) + "ijkl\r\n")
	return bytes.Repeat(line, size/len(line)+1)[:size/len(line)*len(line)]
}

func BenchmarkReadData(b *testing.B) {
	for _, size := range []int{10 << 10, 100 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			in := append(mailBody(size), ".\r\n"...)
			src := bytes.NewReader(in)
			r := NewReader(src, 1024)
			dst := make([]byte, 0, 256<<10)
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				src.Reset(in)
				if _, _, err := r.ReadData(dst, DataOptions{MaxLine: 998, MaxSize: 20 << 20}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWriteData(b *testing.B) {
	for _, size := range []int{10 << 10, 100 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			in := mailBody(size)
			w := NewWriter(io.Discard, 64<<10)
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if w.WriteData(in) != nil || w.Flush() != nil {
					b.Fatal("write failed")
				}
			}
		})
	}
}
