package settings_test

import (
	"testing"

	"example.com/svc/mta/settings"
)

func FuzzDuration(f *testing.F) {
	for _, s := range []string{"5m", "1.5 hours 3s", "1M", "99999999999y", "0.0000000000000000001s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := settings.ParseDuration(s)
		if err != nil {
			return
		}
		if back, err := settings.ParseDuration(settings.FormatDuration(d)); d < 0 || err != nil || back != d {
			t.Errorf("%q: %v prints as %q, reads as %v, %v", s, d, settings.FormatDuration(d), back, err)
		}
	})
}

func FuzzCIDR(f *testing.F) {
	for _, s := range []string{"10.0.0.0/8", "::1", "::ffff:10.0.0.0/104", "10.0.0.1/8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := settings.ParseCIDR(s)
		if err != nil {
			return
		}
		if p != p.Masked() || !(settings.CIDRs{p}).Contains(p.Addr()) {
			t.Errorf("%q is %v", s, p)
		}
		if again, err := settings.ParseCIDR(p.String()); err != nil || again != p {
			t.Errorf("%q: %v reads as %v, %v", s, p, again, err)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"n": 1, "hosts": [{"name": "a"}], "peer": {"10.0.0.0/8": {"name": "x"}}, "any": [1, null, {"a": 1e3}]}`))
	f.Add([]byte(`{"n": 1, "n": 2}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var c kitchen
		if settings.DecodeJSON("f", data, &c) == nil {
			roundTrip(t, c)
		}
	})
}

func FuzzTOML(f *testing.F) {
	f.Add([]byte("n = 1\n[[hosts]]\nname = 'a'\n[peer.'10.0.0.0/8']\nname = 'x'\n"))
	f.Add([]byte("a.b.c = {x = [1, {y = 2}]}\n[[q]]\n[[q.r]]\nz = 1979-05-27T07:32:00Z\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := settings.ParseTOML("f", data); err != nil {
			return
		}
		var c kitchen
		if settings.DecodeTOML("f", data, &c) == nil {
			roundTrip(t, c)
		}
	})
}

// roundTrip checks that what is printed can be read.
func roundTrip(t *testing.T, c kitchen) {
	c.Key = settings.KeySource{}
	c.Any = nil
	if c.Inner.Name == "" {
		c.Inner.Name = "x"
	}
	var back kitchen
	if err := settings.DecodeTOML("printed", settings.Encode(c).TOML(), &back); err != nil {
		t.Errorf("%v\n%s", err, settings.Encode(c).TOML())
	}
}
