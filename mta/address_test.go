package mta

import (
	"errors"
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, tc := range []struct {
		in, local, domain, out string
	}{
		{"", "", "", ""},
		{"user@example.com", "user", "example.com", "user@example.com"},
		{"User.Name+tag@Example.COM", "User.Name+tag", "Example.COM", "User.Name+tag@Example.COM"},
		{`"f\oo"@x.example`, "foo", "x.example", "foo@x.example"},
		{`"a@b"@x.example`, "a@b", "x.example", `"a@b"@x.example`},
		{`"q\"\\"@x.example`, `q"\`, "x.example", `"q\"\\"@x.example`},
		{`" "@x.example`, " ", "x.example", `" "@x.example`},
		{"user@[10.0.0.1]", "user", "[10.0.0.1]", "user@[10.0.0.1]"},
		{"user@[IPv6:::1]", "user", "[IPv6:::1]", "user@[IPv6:::1]"},
		{"postmaster", "postmaster", "", "postmaster"},
		{"grüße@exämple.com", "grüße", "exämple.com", "grüße@exämple.com"},
		{"u@under_score.example", "u", "under_score.example", "u@under_score.example"},
	} {
		a, err := ParseAddress(tc.in)
		if err != nil || a.Local != tc.local || a.Domain != tc.domain || a.String() != tc.out {
			t.Errorf("ParseAddress(%q) = %+v, %v; string %q, want %q", tc.in, a, err, a.String(), tc.out)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for _, in := range []string{
		"user", "@example.com", "user@", "a@b@c", ".a@x.example", "a.@x.example", "a..b@x.example",
		"us er@x.example", "user@ex ample.com", "user@-x.example", "user@x-.example", "user@a..b",
		"user@[300.1.1.1]", "user@[::1]", "user@[IPv6:1.2.3.4]", "user@[10.0.0.1", `"open@x.example`, "\"a\rb\"@x.example",
		"us\x00er@x.example", "user@x\x00.example", "u\xff@x.example", "user@x\xff.example",
		strings.Repeat("a", 65) + "@x.example", "u@" + strings.Repeat("a.", 128) + "example", "u@" + strings.Repeat("a", 64) + ".example",
		"user@example\u3002com", "user@example\uff0ecom", "user@exa\u200bmple.com", "user@exa\u202emple.com",
	} {
		if a, err := ParseAddress(in); !errors.Is(err, ErrAddress) {
			t.Errorf("ParseAddress(%q) = %+v, %v; want ErrAddress", in, a, err)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"a@b", `"x y"@b`, "a@[1.2.3.4]", "ü@ö.example", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseAddress(s)
		if err != nil {
			return
		}
		text := a.String()
		if strings.ContainsAny(text, "\r\n\x00") {
			t.Fatalf("%q printed as %q", s, text)
		}
		again, err := ParseAddress(text)
		if err != nil || again != a {
			t.Fatalf("%q -> %+v -> %q -> %+v, %v", s, a, text, again, err)
		}
	})
}

// QN-1 and QN-2.
func TestQueueName(t *testing.T) {
	for _, tc := range []struct {
		name string
		q    QueueName
	}{
		{"c:t@d", QueueName{Domain: "d", Tenant: "t", Campaign: "c"}},
		{"t@d", QueueName{Domain: "d", Tenant: "t"}},
		{"c:@d", QueueName{Domain: "d", Campaign: "c"}},
		{"d", QueueName{Domain: "d"}},
		{"c:t@d!r", QueueName{Domain: "d", Tenant: "t", Campaign: "c", RoutingDomain: "r"}},
		{"d:2025", QueueName{Domain: "d:2025"}},
	} {
		if got := tc.q.String(); got != tc.name {
			t.Errorf("QN-1 %+v prints %q, want %q", tc.q, got, tc.name)
		}
		if got := ParseQueueName(tc.name); got != tc.q {
			t.Errorf("QN-2 %q parses to %+v, want %+v", tc.name, got, tc.q)
		}
	}
}

func TestCutEnhancedCode(t *testing.T) {
	for _, tc := range []struct {
		in, code, rest string
	}{
		{"5.7.1 no", "5.7.1", "no"}, {"no", "", "no"}, {"5.7 no", "", "5.7 no"}, {"3.1.1 no", "", "3.1.1 no"},
		{"5.1000.1 x", "", "5.1000.1 x"}, {"2.0.0", "2.0.0", ""}, {"", "", ""}, {"5.7.1.2 x", "", "5.7.1.2 x"},
	} {
		e, rest := CutEnhancedCode(tc.in)
		if e.String() != tc.code || rest != tc.rest {
			t.Errorf("CutEnhancedCode(%q) = %q, %q", tc.in, e, rest)
		}
	}
}
