package smtp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"example.com/svc/mta"
)

func TestParseCommand(t *testing.T) {
	tests := []struct {
		in   string
		verb Verb
		arg  string // or path, and parameters after a blank
		err  error
	}{
		{"EHLO mx.example.com", EHLO, "mx.example.com", nil},
		{"ehlo [192.0.2.1]", EHLO, "[192.0.2.1]", nil},
		{"EHLO [IPv6:2001:db8::1]", EHLO, "[IPv6:2001:db8::1]", nil},
		{"EHLO [192.0.2.999]", EHLO, "", ErrArgument},
		{"EHLO a b", EHLO, "", ErrArgument},
		{"EHLO", EHLO, "", ErrArgument},
		{"HELO x(y)", HELO, "", ErrArgument},
		{"MAIL FROM:<>", MAIL, "<>", nil},
		{"mail from:<a@b.example>", MAIL, "<a@b.example>", nil},
		{"MAIL FROM: <a@b.example>  SIZE=10 BODY=8BITMIME SMTPUTF8", MAIL, "<a@b.example> SIZE=10 BODY=8BITMIME SMTPUTF8", nil},
		{"MAIL FROM:<@x.example,@y.example:a@b.example>", MAIL, "<a@b.example>", nil},
		{"MAIL FROM:<\"a>b \\\"c\"@d.example>", MAIL, "<\"a>b \\\"c\"@d.example>", nil},
		{"MAIL FROM:a@b.example", MAIL, "", ErrPath},
		{"MAIL FROM:<a@b.example", MAIL, "", ErrPath},
		{"MAIL FROM:<a@b.example>SIZE=1", MAIL, "", ErrPath},
		{"MAIL FROM:<a@b..example>", MAIL, "", ErrPath},
		{"MAIL FROM:<@x.example>", MAIL, "", ErrPath},
		{"MAIL FROM <a@b.example>", MAIL, "", ErrArgument},
		{"MAIL TO:<a@b.example>", MAIL, "", ErrArgument},
		{"MAIL", MAIL, "", ErrArgument},
		{"MAIL FROM:<a@b.example> SIZE=", MAIL, "", ErrParams},
		{"MAIL FROM:<a@b.example> -X=1", MAIL, "", ErrParams},
		{"MAIL FROM:<a@b.example> X=1=2", MAIL, "", ErrParams},
		{"RCPT TO:<postmaster>", RCPT, "<postmaster>", nil},
		{"RCPT TO:<a@[192.0.2.1]>", RCPT, "<a@[192.0.2.1]>", nil},
		{"RCPT TO:<\xc3\xa4@b.example>", RCPT, "<\xc3\xa4@b.example>", nil},
		{"RCPT TO:<a@b.example\xe3\x80\x82evil.example>", RCPT, "", ErrPath},
		{"RCPT TO:<\xff@b.example>", RCPT, "", ErrCharacters},
		{"RCPT TO:<a\x00@b.example>", RCPT, "", ErrCharacters},
		{"NOOP \r", NOOP, "", ErrCharacters},
		{"DATA", DATA, "", nil},
		{"DATA  ", DATA, "", nil},
		{"DATA x", DATA, "", ErrArgument},
		{"RSET x", RSET, "", ErrArgument},
		{"STARTTLS now", STARTTLS, "", ErrArgument},
		{"QUIT", QUIT, "", nil},
		{"NOOP what ever", NOOP, "what ever", nil},
		{"AUTH PLAIN AGEAYg==", AUTH, "PLAIN AGEAYg==", nil},
		{"AUTH", AUTH, "", ErrArgument},
		{"VRFY a", VRFY, "a", nil},
		{"BDAT 10 LAST", BDAT, "10 LAST", nil},
		{"FROBNICATE x", Unknown, "x", nil},
		{"FOO", Unknown, "", nil},
		{"", Unknown, "", ErrEmpty},
		{" DATA", Unknown, "", ErrEmpty},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			c, err := ParseCommand([]byte(tt.in))
			if c.Verb != tt.verb || !errors.Is(err, tt.err) || tt.err == nil && err != nil {
				t.Fatalf("got %v %v", c.Verb, err)
			}
			if err == nil && show(c) != tt.arg {
				t.Fatalf("got %q", show(c))
			}
		})
	}
}

func show(c Command) string {
	if c.Verb != MAIL && c.Verb != RCPT {
		return c.Arg
	}
	b := AppendPath(nil, c.Path)
	for _, p := range c.Params {
		b = append(append(b, ' '), p.Name...)
		if p.HasValue {
			b = append(append(b, '='), p.Value...)
		}
	}
	return string(b)
}

// FuzzParseCommand: no panic, and what is parsed can be written as one line and parsed again with the same meaning.
func FuzzParseCommand(f *testing.F) {
	for _, s := range []string{"MAIL FROM:<a@b> SIZE=1", "RCPT TO:<\"x y\"@[IPv6:::1]> NOTIFY=NEVER", "EHLO [1.2.3.4]", "AUTH PLAIN ="} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := ParseCommand(in)
		if err != nil {
			return
		}
		if !utf8.ValidString(c.Arg) || strings.ContainsAny(c.Arg, "\r\n\x00") {
			t.Fatalf("argument %q", c.Arg)
		}
		var line string
		switch c.Verb {
		case MAIL:
			line = "MAIL FROM:" + show(c)
		case RCPT:
			line = "RCPT TO:" + show(c)
		default:
			return
		}
		if err := NewWriter(io.Discard, 0).WriteLine(line); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		again, err := ParseCommand([]byte(line))
		if err != nil || again.Path != c.Path || len(again.Params) != len(c.Params) {
			t.Fatalf("%q became %q: %v", in, line, err)
		}
	})
}

func TestAppendPathAndString(t *testing.T) {
	for _, a := range []mta.Address{{}, {Local: "postmaster"}, {Local: "a.b+c", Domain: "d.example"},
		{Local: "a b", Domain: "d.example"}, {Local: "a..b", Domain: "d"}, {Local: "x=y", Domain: "d"}} {
		if got := string(AppendPath(nil, a)); got != "<"+a.String()+">" {
			t.Errorf("%+v: %q", a, got)
		}
	}
}

func TestReadReply(t *testing.T) {
	tests := []struct {
		name, in string
		code     int
		lines    []string
		ok       bool
	}{
		{"one line", "250 2.0.0 OK\r\n", 250, []string{"2.0.0 OK"}, true},
		{"code alone", "250\r\n", 250, []string{""}, true},
		{"many lines", "250-a\r\n250-\r\n250 c\r\n", 250, []string{"a", "", "c"}, true},
		{"junk bytes stay", "550 \x00\x1b\xff\r\n", 550, []string{"\x00\x1b\xff"}, true},
		{"lone LF is text", "550 a\n250 b\r\n", 550, []string{"a\n250 b"}, true},
		{"codes differ", "250-a\r\n550 b\r\n", 0, nil, false},
		{"no code", "hello\r\n", 0, nil, false},
		{"code out of range", "650 a\r\n", 0, nil, false},
		{"bad separator", "250_a\r\n", 0, nil, false},
		{"too many lines", strings.Repeat("250-a\r\n", 101) + "250 b\r\n", 0, nil, false},
		{"too many bytes", strings.Repeat("250-"+strings.Repeat("x", 1000)+"\r\n", 80) + "250 b\r\n", 0, nil, false},
		{"overlong line is cut", "250 " + strings.Repeat("x", 10_000) + "\r\n", 250, []string{strings.Repeat("x", maxReplyLine-4)}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rep, err := NewReader(&pieces{[]byte(tt.in), 100}, 0).ReadReply(ReplyLimits{})
			if tt.ok != (err == nil) || !tt.ok && !errors.Is(err, ErrReply) {
				t.Fatal(err)
			}
			if rep.Code != tt.code || !equal(rep.Lines, tt.lines) {
				t.Fatalf("got %d %q", rep.Code, rep.Lines)
			}
		})
	}
}

func TestReadReplyKeepsLittle(t *testing.T) {
	in := strings.Repeat("250-"+strings.Repeat("x", 996)+"\r\n", 50) + "250 end\r\n"
	rep, err := NewReader(strings.NewReader(in), 0).ReadReply(ReplyLimits{})
	if n := len(strings.Join(rep.Lines, "")); err != nil || n != 16<<10 {
		t.Fatalf("kept %d bytes, %v", n, err)
	}
}

func TestReplyResponse(t *testing.T) {
	tests := []struct {
		rep  Reply
		want string
	}{
		{Reply{550, []string{"5.1.1 no such user"}}, "550 5.1.1 no such user"},
		{Reply{550, []string{"5.1.1 no", "5.1.1 such", "user"}}, `550 5.1.1 no\r\nsuch\r\nuser`},
		{Reply{550, []string{"2.1.1 odd"}}, "550 2.1.1 odd"},
		{Reply{450, []string{"4.7.1 a", "4.7.2 b"}}, `450 4.7.1 a\r\n4.7.2 b`},
	}
	for _, tt := range tests {
		if got := tt.rep.Response("DATA"); got.String() != tt.want || got.Command != "DATA" {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestExtensions(t *testing.T) {
	x := ParseExtensions(Reply{250, []string{"PIPELINING is my name", "size 1000", "StartTLS", "AUTH=PLAIN LOGIN", "8BITMIME", ""}})
	if n, ok := x.Size(); n != 1000 || !ok || !x.Has("STARTTLS") || x.Has("PIPELINING") || x["AUTH"] != "PLAIN LOGIN" {
		t.Fatalf("%v", x)
	}
	for _, s := range []string{"SIZE", "SIZE 0", "SIZE x", "SIZE -1", "SIZE 99999999999999999999"} {
		if n, ok := ParseExtensions(Reply{250, []string{"me", s}}).Size(); ok {
			t.Errorf("%s: %d", s, n)
		}
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add([]byte("250-a\r\n250 b\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		rep, err := NewReader(&pieces{in, 7}, 0).ReadReply(ReplyLimits{MaxLines: 5, MaxKept: 64, MaxRead: 256})
		if err != nil {
			return
		}
		if rep.Code < 200 || rep.Code > 599 || len(rep.Lines) == 0 || len(rep.Lines) > 5 || len(strings.Join(rep.Lines, "")) > 64 {
			t.Fatalf("%+v", rep)
		}
		_ = rep.Response("X").String()
		ParseExtensions(rep)
	})
}

type countingWriter struct {
	bytes.Buffer
	writes int
}

func (c *countingWriter) Write(p []byte) (int, error) {
	c.writes++
	return c.Buffer.Write(p)
}

func TestWriter(t *testing.T) {
	var c countingWriter
	w := NewWriter(&c, 4096)
	_ = w.WriteReply(250, "a", "b\r\n250 c\x00")
	_ = w.WriteReply(354)
	_ = w.WriteLine("NOOP")
	if err := w.WriteLine("RCPT TO:<a>\r\nRSET"); !errors.Is(err, ErrUnsafeLine) {
		t.Fatal(err)
	}
	if c.writes != 0 || w.Flush() != nil || c.writes != 1 {
		t.Fatalf("%d writes", c.writes)
	}
	if got := c.String(); got != "250-a\r\n250 b  250 c \r\n354 \r\nNOOP\r\n" {
		t.Fatalf("%q", got)
	}
}

func TestWriterKeepsError(t *testing.T) {
	r, p := io.Pipe()
	r.Close()
	w := NewWriter(p, 0)
	_ = w.WriteLine("x")
	if w.Flush() == nil || w.WriteData(bytes.Repeat([]byte("y"), 1000)) == nil || w.WriteReply(250, "z") == nil {
		t.Fatal("the error is gone")
	}
}

func BenchmarkParseCommand(b *testing.B) {
	for _, s := range []string{"RCPT TO:<someone@some.example.com>", "DATA"} {
		b.Run(s[:4], func(b *testing.B) {
			line := []byte(s)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseCommand(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
