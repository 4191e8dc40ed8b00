package route

import (
	"net/netip"
	"strings"
	"testing"

	"example.com/svc/mta/settings"
)

func TestMXEntry(t *testing.T) {
	ip4, ip6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("2001:db8::1")
	for _, c := range []struct {
		in   any
		want MXEntry
		text string
		err  string
	}{
		{in: "MX.Example.com.", want: MXEntry{Name: "mx.example.com"}, text: "mx.example.com"},
		{in: "bücher.example", want: MXEntry{Name: "xn--bcher-kva.example"}, text: "xn--bcher-kva.example"},
		{in: "mx.example.com:2025", want: MXEntry{Name: "mx.example.com", Port: 2025}, text: "mx.example.com:2025"},
		{in: "[10.0.0.1]", want: MXEntry{Addr: ip4}, text: "[10.0.0.1]"},
		{in: "[10.0.0.1]:26", want: MXEntry{Addr: ip4, Port: 26}, text: "[10.0.0.1]:26"},
		{in: "[2001:db8::1]:26", want: MXEntry{Addr: ip6, Port: 26}, text: "[2001:db8::1]:26"},
		{in: "[IPv6:2001:db8::1]", want: MXEntry{Addr: ip6}, text: "[2001:db8::1]"},
		{in: map[string]any{"name": "mx", "addr": "10.0.0.1"}, want: MXEntry{Name: "mx", Addr: ip4}, text: "mx"},
		{in: map[string]any{"name": "mx", "addr": "10.0.0.1:26"}, want: MXEntry{Name: "mx", Addr: ip4, Port: 26}, text: "mx:26"},
		{in: map[string]any{"name": "mx", "addr": "[2001:db8::1]:26"}, want: MXEntry{Name: "mx", Addr: ip6, Port: 26}, text: "mx:26"},
		{in: map[string]any{"name": "mx", "addr": "2001:db8::1"}, want: MXEntry{Name: "mx", Addr: ip6}, text: "mx"},
		{in: map[string]any{"name": "mx", "addr": "::ffff:10.0.0.1"}, want: MXEntry{Name: "mx", Addr: ip4}, text: "mx"},
		{in: "", err: "invalid mx_list entry"},
		{in: ".", err: "invalid mx_list entry"},
		{in: "a b", err: "invalid mx_list entry"},
		{in: "a|b", err: "not a host name"},
		{in: "a,b", err: "invalid mx_list entry"},
		{in: "mx:0", err: "invalid mx_list entry"},
		{in: "mx:65536", err: "invalid mx_list entry"},
		{in: "mx:+25", err: "invalid mx_list entry"},
		{in: "2001:db8::1", err: "invalid mx_list entry"},
		{in: "[10.0.0.1", err: "invalid mx_list entry"},
		{in: "[fe80::1%eth0]", err: "invalid mx_list entry"},
		{in: 25, err: "a string, or a table"},
		{in: map[string]any{"name": "mx"}, err: "name and addr"},
		{in: map[string]any{"name": "mx", "addr": "10.0.0.1", "port": 25}, err: `unknown setting "port"`},
		{in: map[string]any{"name": "m x", "addr": "10.0.0.1"}, err: "name: "},
		{in: map[string]any{"name": "mx", "addr": "elsewhere"}, err: "invalid addr"},
		{in: map[string]any{"name": "mx", "addr": "fe80::1%eth0"}, err: "zone"},
	} {
		var e MXEntry
		err := e.UnmarshalSetting(c.in)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || e != (MXEntry{}) {
				t.Errorf("SC-4 %v: %+v, %v; want error %q", c.in, e, err, c.err)
			}
			continue
		}
		if err != nil || e != c.want || e.String() != c.text {
			t.Errorf("SC-4 %v: %+v %q, %v; want %+v %q", c.in, e, e, err, c.want, c.text)
		}
		out := e.MarshalSetting()
		if m, ok := out.(settings.Map); ok {
			out = m.Tree()
		}
		var again MXEntry
		if err := again.UnmarshalSetting(out); err != nil || again != e {
			t.Errorf("SC-4 %v: written as %v, read as %+v, %v", c.in, out, again, err)
		}
	}
}

func TestMXEntryInSettings(t *testing.T) {
	type config struct {
		// MXList replaces the MX records.
		MXList []MXEntry `set:"mx_list"`
	}
	in := map[string]any{"mx_list": []any{"mx.test:26", map[string]any{"name": "b.test", "addr": "10.0.0.1"}}}
	var c config
	if err := settings.Decode("smtp", in, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.MXList) != 2 || c.MXList[0].Port != 26 || c.MXList[1].Name != "b.test" || !c.MXList[1].Addr.IsValid() {
		t.Errorf("%+v", c)
	}
	var again config
	if err := settings.Decode("smtp", settings.Encode(c).Tree(), &again); err != nil || len(again.MXList) != 2 || again.MXList[1] != c.MXList[1] {
		t.Errorf("%+v, %v", again, err)
	}
	in["mx_list"] = []any{"mx.test", "a|b"}
	if err := settings.Decode("smtp", in, &c); err == nil || !strings.Contains(err.Error(), "mx_list") {
		t.Errorf("got %v", err)
	}
}

func FuzzMXEntry(f *testing.F) {
	for _, s := range []string{"mx", "mx:25", "[::1]:25", "[10.0.0.1]", "bücher:25", "a.:1", "[", "]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseMXEntry(s)
		if err != nil {
			return
		}
		if strings.ContainsAny(e.Name, "|()?,:@!> \n") || (e.Name == "") == !e.Addr.IsValid() {
			t.Fatalf("%q gives %+v", s, e)
		}
		again, err := ParseMXEntry(e.String())
		if err != nil || again != e {
			t.Fatalf("%q gives %+v, written %q, read %+v, %v", s, e, e, again, err)
		}
	})
}
