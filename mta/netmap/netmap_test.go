package netmap

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestCIDR(t *testing.T) {
	var c CIDR[string]
	for _, k := range []string{"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "::/0", "2001:db8::/32", "::ffff:192.0.2.0/120",
		"2001:db8::1"} {
		if err := c.SetString(k, k); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ addr, want string }{
		{"10.200.0.1", "10.0.0.0/8"},
		{"10.1.9.9", "10.1.0.0/16"},
		{"10.1.2.3", "10.1.2.3"},
		{"11.0.0.1", ""},
		{"192.0.2.77", "::ffff:192.0.2.0/120"},
		{"::ffff:10.1.2.3", "10.1.2.3"},
		{"fe80::1%eth0", "::/0"},
		{"2001:db8::2", "2001:db8::/32"},
		{"2001:db8::1", "2001:db8::1"},
	} {
		t.Run("N1 "+tc.addr, func(t *testing.T) {
			a := netip.MustParseAddr(tc.addr)
			got, ok := c.Lookup(a)
			if got != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, tc.want)
			}
			p, v, ok2 := c.Match(a)
			if v != got || ok2 != ok || ok && !p.Contains(plainAddr(a)) {
				t.Errorf("Match gives %s, %q, %v", p, v, ok2)
			}
		})
	}
	if _, ok := c.Lookup(netip.Addr{}); ok {
		t.Error("the zero address is found")
	}
	if _, _, ok := c.Match(netip.Addr{}); ok {
		t.Error("the zero address is matched")
	}
	if c.Len() != 7 {
		t.Errorf("Len is %d, want 7", c.Len())
	}
	if !c.Delete(netip.MustParsePrefix("10.1.0.0/16")) || c.Delete(netip.MustParsePrefix("10.1.0.0/16")) {
		t.Error("Delete reports the wrong thing")
	}
	if got, _ := c.Lookup(netip.MustParseAddr("10.1.9.9")); got != "10.0.0.0/8" {
		t.Errorf("after Delete: %q", got)
	}
	var order []string
	for p := range c.All() {
		order = append(order, p.String())
	}
	want := []string{"10.0.0.0/8", "10.1.2.3/32", "192.0.2.0/24", "::/0", "2001:db8::/32", "2001:db8::1/128"}
	if !slices.Equal(order, want) {
		t.Errorf("All gives %q, want %q", order, want)
	}
}

func TestCIDRRefuses(t *testing.T) {
	var c CIDR[int]
	for key, want := range map[string]string{
		"192.168.1.1/24":     "did you mean 192.168.1.0/24?",
		"300.0.0.1":          "invalid address",
		"10.0.0.0/33":        "invalid address block",
		"::ffff:10.0.0.0/90": "wider",
		"":                   "invalid address",
	} {
		if err := c.SetString(key, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", key, err, want)
		}
	}
	if c.Set(netip.Prefix{}, 1) == nil || c.Delete(netip.Prefix{}) {
		t.Error("the zero block is taken")
	}
}

func TestDomain(t *testing.T) {
	var d Domain[string]
	if _, ok := d.Lookup("example.com"); ok {
		t.Error("found in an empty map")
	}
	for _, k := range []string{"example.com", "*.example.com", "*.deep.example.com", "other.example.com", "*.Net."} {
		if err := d.Set(k, k); err != nil {
			t.Fatal(err)
		}
	}
	lookups := []struct{ name, want string }{
		{"example.com", "example.com"},
		{"EXAMPLE.com.", "example.com"},
		{"a.example.com", "*.example.com"},
		{"a.b.c.example.com", "*.example.com"},
		{"deep.example.com", "*.example.com"},
		{"x.deep.example.com", "*.deep.example.com"},
		{"other.example.com", "other.example.com"},
		{"sub.other.example.com", "*.example.com"},
		{"a.net", "*.Net."},
		{"net", ""},
		{"notexample.com", ""},
		{"", ""},
		{".", ""},
		{strings.Repeat("a.", 300) + "example.com", ""},
	}
	for _, tc := range lookups {
		if got, ok := d.Lookup(tc.name); got != tc.want || ok != (tc.want != "") {
			t.Errorf("N2 %q: got %q, %v, want %q", tc.name, got, ok, tc.want)
		}
	}
	if err := d.Set("*", "any"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"net", "a.b"} {
		if got, _ := d.Lookup(name); got != "any" {
			t.Errorf("%q: got %q, want any", name, got)
		}
	}
	keys := make(map[string]string)
	for k, v := range d.All() {
		keys[k] = v
	}
	if len(keys) != 6 || d.Len() != 6 || keys["*"] != "any" || keys["*.net"] != "*.Net." || keys["example.com"] == "" {
		t.Errorf("All gives %v", keys)
	}
	if !d.Delete("*.example.com") || d.Delete("*.example.com") || d.Delete("") {
		t.Error("Delete reports the wrong thing")
	}
	if got, _ := d.Lookup("a.example.com"); got != "any" {
		t.Errorf("after Delete: %q", got)
	}
}

func TestDomainRefuses(t *testing.T) {
	var d Domain[int]
	for _, key := range []string{"", ".", "a..b", ".a", "a.*.b", "*a", "*.", "*.*", strings.Repeat("a", 300)} {
		if err := d.Set(key, 1); err == nil {
			t.Errorf("%q is taken", key)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	var c CIDR[int]
	var d Domain[int]
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				a := netip.AddrFrom4([4]byte{10, byte(w), byte(i), 0})
				if err := c.Set(netip.PrefixFrom(a, 24), i); err != nil {
					t.Error(err)
				}
				if v, ok := c.Lookup(a.Next()); !ok || v != i {
					t.Errorf("lookup of %s gives %d, %v", a, v, ok)
				}
				name := fmt.Sprintf("%d.w%d.example", i, w)
				if err := d.Set(name, i); err != nil {
					t.Error(err)
				}
				if v, ok := d.Lookup(name); !ok || v != i {
					t.Errorf("lookup of %s gives %d, %v", name, v, ok)
				}
			}
			for range c.All() {
			}
		})
	}
	wg.Wait()
}

func BenchmarkCIDRLookup(b *testing.B) {
	var c CIDR[int]
	for i := range 10000 {
		if err := c.Set(netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(i >> 8), byte(i), 0, 0}), 16), i); err != nil {
			b.Fatal(err)
		}
	}
	a := netip.MustParseAddr("20.30.40.50")
	b.ReportAllocs()
	for b.Loop() {
		c.Lookup(a)
	}
}

func BenchmarkDomainLookup(b *testing.B) {
	var d Domain[int]
	for i := range 10000 {
		if err := d.Set(fmt.Sprintf("*.domain-%d.example", i), i); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Lookup("mx1.out.domain-77.example")
	}
}
