package dns

import (
	"net/netip"
	"strings"
	"testing"
)

func TestCanonical(t *testing.T) {
	label := strings.Repeat("a", 63)
	for _, c := range []struct{ in, want string }{
		{"Example.COM.", "example.com"},
		{"example.com", "example.com"},
		{".", "."},
		{"bücher.example", "xn--bcher-kva.example"},
		{"BÜCHER.example.", "xn--bcher-kva.example"},
		{"_dmarc.bücher.example", "_dmarc.xn--bcher-kva.example"},
		{"例え。テスト", "xn--r8jz45g.xn--zckzah"},
		{"faß.example", "xn--fa-hia.example"}, // RFC 5891: not "fass"
		{label + ".x", label + ".x"},
		{label + "a.x", ""},
		{strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 126) + "a"},
		{strings.Repeat("a.", 126) + "aa", ""},
		{strings.Repeat("ü", 2000), ""},
		{"", ""}, {"..", ""}, {"a..b", ""}, {".a", ""}, {"a b", ""}, {"a\nb", ""}, {`a\.b`, ""}, {"a\x7f", ""}, {"\xff\xfe", ""},
		{"a。。b", ""},
	} {
		got, err := Canonical(c.in)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%.40q: %q, %v; want %q", c.in, got, err, c.want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = Canonical("mail.example.com.") }); n != 0 {
		t.Errorf("%v allocations for a canonical name", n)
	}
}

func TestReverse(t *testing.T) {
	for _, c := range []struct{ ip, rev, name string }{
		{"127.0.0.1", "1.0.0.127", "1.0.0.127.in-addr.arpa"},
		{"192.168.10.205", "205.10.168.192", "205.10.168.192.in-addr.arpa"},
		{"::ffff:10.0.0.1", "1.0.0.10", "1.0.0.10.in-addr.arpa"},
		{"2001:db8::1", "1" + strings.Repeat(".0", 23) + ".8.b.d.0.1.0.0.2", "1" + strings.Repeat(".0", 23) + ".8.b.d.0.1.0.0.2.ip6.arpa"},
	} {
		ip := netip.MustParseAddr(c.ip)
		if got := ReverseIP(ip); got != c.rev {
			t.Errorf("ReverseIP(%s) = %s", c.ip, got)
		}
		if got := ReverseName(ip); got != c.name {
			t.Errorf("ReverseName(%s) = %s", c.ip, got)
		}
	}
	if ReverseName(netip.Addr{}) != "" {
		t.Error("the zero address has a name")
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"a.b", "bücher.example.", "..", "a\\b", "xn--a", "。", "a。.", "ﷺ.example"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Canonical(s)
		if err != nil {
			return
		}
		if again, err := Canonical(n); again != n || err != nil {
			t.Fatalf("%q gives %q, and that %q, %v", s, n, again, err)
		}
		if n != "." && (len(n) > maxName || strings.HasSuffix(n, ".") || strings.ToLower(n) != n) {
			t.Fatalf("%q gives %q", s, n)
		}
	})
}
