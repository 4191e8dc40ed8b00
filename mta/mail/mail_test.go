package mail

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

const sample = "Received: from a\r\n\tby b\r\nSubject: =?utf-8?q?gr=C3=BC=C3=9Fe?=\r\nX-A : one\r\nx-a:two\r\n\r\nbody\r\n"

func TestParse(t *testing.T) {
	h := Parse([]byte(sample))
	if h.Len() != 4 || string(h.Body()) != "body\r\n" {
		t.Fatalf("%d fields, body %q", h.Len(), h.Body())
	}
	if f, _ := h.First("received"); f.Value() != "from a\tby b" || f.RawValue() != "from a\r\n\tby b" {
		t.Errorf("received: %q, %q", f.Value(), f.RawValue())
	}
	if f, _ := h.First("SUBJECT"); f.Value() != "grüße" {
		t.Errorf("subject: %q", f.Value())
	}
	if h.Count("X-A") != 2 {
		t.Errorf("X-A counted %d times", h.Count("X-A"))
	}
}

func TestParseEnds(t *testing.T) {
	for _, tc := range []struct {
		in     string
		fields int
		body   string
	}{
		{"", 0, ""}, {"\r\nx", 0, "x"}, {"A: b", 1, ""}, {"A: b\r\n", 1, ""}, {"no header\r\n", 0, "no header\r\n"},
		{"A: b\r\nnot a field\r\n\r\nx", 1, "not a field\r\n\r\nx"}, {"A: b\n\nx", 1, "x"}, {" lead\r\n", 0, " lead\r\n"},
		{": x\r\n", 0, ": x\r\n"}, {"A b: c\r\n", 0, "A b: c\r\n"},
	} {
		h := Parse([]byte(tc.in))
		if h.Len() != tc.fields || string(h.Body()) != tc.body {
			t.Errorf("%q: %d fields, body %q", tc.in, h.Len(), h.Body())
		}
	}
}

func TestChange(t *testing.T) {
	h := Parse([]byte(sample))
	out, n := h.Remove(func(f Field) bool { return f.Is("x-a") })
	if n != 2 || string(out) != strings.Replace(sample, "X-A : one\r\nx-a:two\r\n", "", 1) {
		t.Errorf("removed %d: %q", n, out)
	}
	out = h.Append(AppendField(nil, "X-B", "three"))
	if string(out) != strings.Replace(sample, "\r\n\r\n", "\r\nX-B: three\r\n\r\n", 1) {
		t.Errorf("appended: %q", out)
	}
	if out := Parse([]byte("just text")).Append([]byte("A: b\r\n")); string(out) != "A: b\r\n\r\njust text" {
		t.Errorf("appended to a body without header: %q", out)
	}
	if out := Parse([]byte("A: b")).Append([]byte("C: d\r\n")); string(out) != "A: b\r\nC: d\r\n" {
		t.Errorf("appended to an unfinished line: %q", out)
	}
}

func TestCheckField(t *testing.T) {
	for _, tc := range []struct{ name, value string }{
		{"", "x"}, {"a:b", "x"}, {"a b", "x"}, {"é", "x"}, {"A", "x\r\nB: y"}, {"A", "x\ny"}, {"A", "x\r"}, {"A", "\x00"},
	} {
		if err := CheckField(tc.name, tc.value); !errors.Is(err, ErrField) {
			t.Errorf("%q: %q gives %v", tc.name, tc.value, err)
		}
	}
	if err := CheckField("A", "x\r\n y\r\n\tz"); err != nil {
		t.Error(err)
	}
}

func TestEncodeValue(t *testing.T) {
	long := strings.Repeat("word ", 40)
	for _, v := range []string{"plain", "grüße an alle", long, strings.Repeat("ä", 200)} {
		enc := EncodeValue("Subject", v)
		msg := AppendField(nil, "Subject", enc)
		if err := CheckField("Subject", enc); err != nil {
			t.Errorf("%q: %v", enc, err)
		}
		for line := range strings.SplitSeq(string(msg), "\r\n") {
			if len(line) > 78 {
				t.Errorf("line of %d columns: %q", len(line), line)
			}
		}
		if f, _ := Parse(msg).First("Subject"); f.Value() != strings.TrimSpace(v) {
			t.Errorf("%q came back as %q", v, f.Value())
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte("A: b\n\n"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		h := Parse(msg)
		var all []byte
		for fd := range h.All() {
			all = append(all, fd.Bytes()...)
			_ = fd.Value()
		}
		if !bytes.Equal(all, msg[:h.end]) || len(msg)-len(h.Body()) < h.end {
			t.Fatalf("fields %q and body %q do not make %q", all, h.Body(), msg)
		}
		if out, n := h.Remove(func(Field) bool { return true }); n != h.Len() || (n > 0 && len(out) != len(msg)-h.end) {
			t.Fatalf("removed %d of %d", n, h.Len())
		}
	})
}

func BenchmarkCount(b *testing.B) {
	msg := []byte(strings.Repeat("Received: from a.example by b.example with ESMTP id 1;\r\n\tSat, 1 Jan 2000 00:00:00 +0000\r\n", 5) +
		"Subject: x\r\n\r\n" + strings.Repeat("body line of some length\r\n", 400))
	b.ReportAllocs()
	for b.Loop() {
		if Parse(msg).Count("Received") != 5 {
			b.Fatal("wrong count")
		}
	}
}

// SM-48: the header decodes to JSON with the marker after white space is removed.
func TestSupplemental(t *testing.T) {
	meta := map[string]any{"tenant": "acme", "long": strings.Repeat("x", 300)}
	b, err := AppendSupplemental(nil, "X-SvcRef", []string{"a@b.example"}, []string{"tenant", "long", "unset"},
		func(k string) (any, bool) { v, ok := meta[k]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(b), "\r\n") {
		if len(line) > 76 {
			t.Errorf("line of %d columns", len(line))
		}
	}
	f, ok := Parse(b).First("x-svcref")
	if !ok {
		t.Fatalf("no header in %q", b)
	}
	enc := strings.Map(func(r rune) rune {
		if r == ' ' || r == '\t' || r == '\r' || r == '\n' {
			return -1
		}
		return r
	}, f.RawValue())
	text, err := base64.StdEncoding.DecodeString(enc)
	if err != nil {
		t.Fatal(err)
	}
	var obj map[string]any
	if err := json.Unmarshal(text, &obj); err != nil {
		t.Fatal(err)
	}
	if b, err := AppendSupplemental(nil, "X-SvcRef", []string{"a@b.example"}, nil, nil); err != nil ||
		string(b) != "X-SvcRef: eyJfQF8iOiJcXF8vIiwicmVjaXBpZW50IjoiYUBiLmV4YW1wbGUifQ==\r\n" {
		t.Errorf("short form %q, %v", b, err)
	}
	if obj["_@_"] != `\_/` || obj["recipient"] != "a@b.example" || obj["tenant"] != "acme" || len(obj) != 4 {
		t.Errorf("decoded to %v", obj)
	}
}
