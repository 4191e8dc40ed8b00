package route

import (
	"strings"
	"testing"
)

func TestSiteName(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts []string
		want  string
	}{
		{"SC-2 none", nil, ""},
		{"SC-2 one host", []string{"mx.example.com"}, "mx.example.com"},
		{"SC-2 trailing dot and case", []string{"MX.Example.COM."}, "mx.example.com"},
		{"SC-2 README section 4: gmail", []string{
			"gmail-smtp-in.l.google.com", "alt1.gmail-smtp-in.l.google.com", "alt2.gmail-smtp-in.l.google.com",
			"alt3.gmail-smtp-in.l.google.com", "alt4.gmail-smtp-in.l.google.com",
		}, "(alt1|alt2|alt3|alt4)?.gmail-smtp-in.l.google.com"},
		{"SC-2 several labels in the order of the hosts", []string{"mx2.example.com", "mx1.example.com"}, "(mx2|mx1).example.com"},
		{"SC-2 labels counted once", []string{"a.x.example", "a.y.example", "b.x.example"}, "(a|b).(x|y).example"},
		{"SC-2 different depths", []string{"a.b.example.com", "example.com"}, "a?.b?.example.com"},
		{"SC-2 shorter and different", []string{"a.b.example.com", "c.d.example.com", "example.com"}, "(a|c)?.(b|d)?.example.com"},
		{"SC-2 nothing in common", []string{"a.example", "b.test"}, "(a|b).(example|test)"},
		{"SC-2 same host twice", []string{"mx.example.com", "MX.example.com."}, "mx.example.com"},
		{"SC-2 port", []string{"mx.example.com:2025"}, "mx.example.com:2025"},
		{"SC-2 port after a trailing dot", []string{"mx.example.com.:2025"}, "mx.example.com:2025"},
		{"SC-2 port belongs to the last label", []string{"mx1.example.com:2025", "mx2.example.com:2025"}, "(mx1|mx2).example.com:2025"},
		{"SC-2 different ports", []string{"mx.example.com:25", "mx.example.com:26"}, "mx.example.(com:25|com:26)"},
		{"SC-2 IPv4", []string{"10.0.0.1"}, "10.0.0.1"},
		{"SC-2 IPv6", []string{"2001:DB8::1"}, "2001:db8::1"},
		{"SC-2 IPv6 with port", []string{"[2001:db8::1]:26"}, "[2001:db8::1]:26"},
		{"SC-2 an address is one label", []string{"10.0.0.1", "mx.example"}, "mx?.(10.0.0.1|example)"},
	} {
		if got := SiteName(c.hosts); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzSiteName(f *testing.F) {
	for _, s := range []string{"", "a", "a.b,c.b", "a.b:25,c", "[::1]:25,::1", ".,..", "a.:1", ":", "a:0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		hosts := strings.Split(s, ",")
		got := SiteName(hosts)
		size := 0
		for _, h := range hosts {
			size += 2*len(h) + 4 + 2*strings.Count(h, ".")
		}
		if len(got) > 4*size {
			t.Fatalf("%d octets for %q", len(got), s)
		}
		if SiteName(hosts) != got {
			t.Fatal("not the same twice")
		}
		if len(hosts) == 1 && SiteName([]string{got}) != got && !strings.HasSuffix(got, ".") {
			t.Fatalf("%q is named %q, and that %q", s, got, SiteName([]string{got}))
		}
	})
}

func BenchmarkSiteName(b *testing.B) {
	hosts := []string{
		"gmail-smtp-in.l.google.com", "alt1.gmail-smtp-in.l.google.com", "alt2.gmail-smtp-in.l.google.com",
		"alt3.gmail-smtp-in.l.google.com", "alt4.gmail-smtp-in.l.google.com",
	}
	b.ReportAllocs()
	for b.Loop() {
		SiteName(hosts)
	}
}
