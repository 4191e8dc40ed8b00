package mta

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestResponse(t *testing.T) {
	for _, tc := range []struct {
		name, text, oneLine, str string
		code                     int
	}{
		{"CL-2 plain", "no", "no", "550 no", 550},
		{"CL-2 enhanced", "5.7.1 no", "no", "550 5.7.1 no", 550},
		{"CL-2 no text", "", "", "250", 250},
		{"CL-2 code alone", "2.0.0", "", "250 2.0.0", 250},
		{"line feed", "5.7.1 a\nb", `a\r\nb`, `550 5.7.1 a\r\nb`, 550},
		{"CRLF", "a\r\nb\r\n", `a\r\nb\r\n`, `451 a\r\nb\r\n`, 451},
		{"carriage return", "a\rb\r", `a\rb\r`, `451 a\rb\r`, 451},
		{"empty lines", "\n\r\n\r", `\r\n\r\n\r`, `451 \r\n\r\n\r`, 451},
		{"other bytes stay", "a\tb\\n\x00", "a\tb\\n\x00", "451 a\tb\\n\x00", 451},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ParseResponse(tc.code, tc.text)
			if r.OneLine() != tc.oneLine || r.String() != tc.str {
				t.Errorf("%q and %q, want %q and %q", r.OneLine(), r, tc.oneLine, tc.str)
			}
			if strings.ContainsAny(r.String(), "\r\n") {
				t.Error("more than one line")
			}
			if r.Permanent() != (tc.code == 550) {
				t.Errorf("permanent: %v", r.Permanent())
			}
		})
	}
	in := Internal(451, EnhancedCode{4, 4, 4}, "suspended")
	if in.String() != "451 4.4.4 "+InternalPrefix+"suspended" {
		t.Errorf("internal: %q", in)
	}
	for code, want := range map[int]bool{499: false, 500: true, 599: true, 600: false} {
		if got := (Response{Code: code}).Permanent(); got != want {
			t.Errorf("%d permanent: %v", code, got)
		}
	}
}

func TestRejection(t *testing.T) {
	err := fmt.Errorf("handler at x.lua:3: %w", Reject(550, "5.7.1 no\r\nway"))
	var r *Rejection
	if !errors.As(err, &r) || r.Mode != If421 {
		t.Fatalf("%v is no Rejection", err)
	}
	if got := r.Error(); got != `550 5.7.1 no\r\nway` {
		t.Errorf("text %q", got)
	}
	if resp := r.Response(); resp.Code != 550 || resp.Enhanced != (EnhancedCode{5, 7, 1}) || resp.Content != "no\r\nway" {
		t.Errorf("response %+v", resp)
	}
	if !errors.As(Disconnect(451, "later", FollowWith421), &r) || r.Mode != FollowWith421 || r.Code != 451 {
		t.Errorf("%+v", r)
	}
}

func TestInsertError(t *testing.T) {
	a, b, c := errors.New("a"), errors.New("b"), errors.New("c")
	for range 20 { // whatever order the map has
		e := &InsertError{Failed: map[int]error{7: b, 2: a}}
		if e.Error() != "insert: message 2: a" || !errors.Is(e, b) || e.Unwrap()[0] != a {
			t.Fatalf("%v, %v", e, e.Unwrap())
		}
		e.Err = c
		if e.Error() != "insert: c" || e.Unwrap()[0] != c || len(e.Unwrap()) != 3 {
			t.Fatalf("%v, %v", e, e.Unwrap())
		}
	}
	if (&InsertError{}).Error() == "" {
		t.Error("no text")
	}
}

func TestGate(t *testing.T) {
	if Gate(nil).Check() != nil {
		t.Error("a nil gate refuses")
	}
	want := &Refusal{Reason: "shutting down"}
	if got := Gate(func() *Refusal { return want }).Check(); got != want || got.Error() != "shutting down" {
		t.Errorf("%v", got)
	}
}
