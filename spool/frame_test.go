package spool

import (
	"bytes"
	"errors"
	"testing"
)

func TestFrameBytes(t *testing.T) {
	got := AppendFrame([]byte("x"), []byte("hello"))
	want := []byte("xSPL\x01\x00\x00\x00\x05\xa1\x79\x1d\xd5hello")
	if !bytes.Equal(got[:9], want[:9]) || !bytes.Equal(got[13:], want[13:]) {
		t.Errorf("frame = %q", got)
	}
	v, err := ParseFrame(got[1:])
	if err != nil || string(v) != "hello" {
		t.Errorf("ParseFrame = %q, %v", v, err)
	}
	if v, err := ParseFrame(AppendFrame(nil, nil)); err != nil || len(v) != 0 {
		t.Errorf("empty value: %q, %v", v, err)
	}
}

func TestFrameEveryBitAndLength(t *testing.T) {
	frame := AppendFrame(nil, []byte("a value of some bytes"))
	var corrupt *CorruptError
	for i := range frame {
		for bit := range 8 {
			b := bytes.Clone(frame)
			b[i] ^= 1 << bit
			if _, err := ParseFrame(b); !errors.As(err, &corrupt) {
				t.Fatalf("S3 flip of byte %d bit %d: %v", i, bit, err)
			}
		}
		if _, err := ParseFrame(frame[:i]); !errors.As(err, &corrupt) {
			t.Fatalf("S3 truncation to %d: %v", i, err)
		}
	}
	if _, err := ParseFrame(append(frame, 0)); !errors.As(err, &corrupt) {
		t.Errorf("S3 a byte too many: %v", err)
	}
}

func TestCorruptErrorText(t *testing.T) {
	cause := errors.New("cause")
	id := ID{1}
	for _, e := range []*CorruptError{
		{Err: cause}, {ID: id, Err: cause}, {Path: "p", Err: cause}, {ID: id, Path: "p", Err: cause},
	} {
		if !errors.Is(e, cause) || len(e.Error()) < 20 {
			t.Errorf("%v", e)
		}
	}
}

func FuzzParseFrame(f *testing.F) {
	f.Add(AppendFrame(nil, []byte("hello")))
	f.Add([]byte("SPL\x01\xff\xff\xff\xff\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := ParseFrame(b)
		var corrupt *CorruptError
		if err != nil {
			if !errors.As(err, &corrupt) {
				t.Errorf("error %v is no CorruptError", err)
			}
			return
		}
		if !bytes.Equal(AppendFrame(nil, v), b) {
			t.Errorf("%x does not come back from its value", b)
		}
	})
}

func BenchmarkAppendFrame(b *testing.B) {
	value := make([]byte, 10_000)
	buf := make([]byte, 0, len(value)+HeaderSize)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendFrame(buf[:0], value)
	}
}
