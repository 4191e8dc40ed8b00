package limit_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/svc/mta/limit"
	"example.com/svc/mta/settings"
)

func TestParseRate(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		give  string
		want  limit.Rate
		print string
	}{
		{"100/s", limit.Rate{Count: 100, Period: time.Second}, "100/s"},
		{"local:1,000/hr", limit.Rate{Count: 1000, Period: time.Hour, Local: true}, "local:1000/h"},
		{"1_000/h", limit.Rate{Count: 1000, Period: time.Hour}, "1000/h"},
		{"500/d,max_burst=1", limit.Rate{Count: 500, Period: day, Burst: 1}, "500/d,max_burst=1"},
		{"20/30minute", limit.Rate{Count: 20, Period: 30 * time.Minute}, "20/1800s"},
		{"20/30min", limit.Rate{Count: 20, Period: 30 * time.Minute}, "20/1800s"},
		{"6/m,max_burst=1_0", limit.Rate{Count: 6, Period: time.Minute, Burst: 10}, "6/m,max_burst=10"},
		{"5/60sec", limit.Rate{Count: 5, Period: time.Minute}, "5/m"},
		{"1/1day", limit.Rate{Count: 1, Period: day}, "1/d"},
		{"3/second", limit.Rate{Count: 3, Period: time.Second}, "3/s"},
	}
	for _, tt := range tests {
		t.Run("TH-1 "+tt.give, func(t *testing.T) {
			r, err := limit.ParseRate(tt.give)
			if err != nil || r != tt.want || r.String() != tt.print {
				t.Errorf("got %+v %q %v", r, r, err)
			}
		})
	}
	for _, bad := range []string{"", "fast", "100", "/s", "0/s", "-1/s", "+1/s", "100/seconds", "100/minutes", "100/ s", "100 /s", "100/0s",
		"100/s,max_burst=0", "100/s,max_burst=", "100/s,burst=3", "1.5/s", "LOCAL:1/s", "100/S", "99999999999999999999/s", "1/99999999999d",
		"_/s", "1/s,max_burst=1,max_burst=2", "1/d,max_burst=1000000000"} {
		if r, err := limit.ParseRate(bad); err == nil {
			t.Errorf("TH-1: %q was read as %v", bad, r)
		}
	}
	_, err := limit.ParseRate("fast")
	if got := fmt.Sprint(err); got != `invalid rate "fast", want for example "100/s"` {
		t.Error(got)
	}
}

func TestRateOrder(t *testing.T) {
	order := []string{"1/d", "1/h", "25/d", "1/m,max_burst=1", "60/h", "1/s", "61/m", "18446744073709551615/s"}
	for i := range order {
		for j := range order {
			a, _ := limit.ParseRate(order[i])
			b, _ := limit.ParseRate(order[j])
			if got := a.Compare(b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("TH-8: %s compared with %s: %d", order[i], order[j], got)
			}
		}
	}
	if r, _ := limit.ParseRate("90/m"); r.PerSecond() != 1.5 {
		t.Error(r.PerSecond())
	}
}

func TestRateReadsWhatItPrints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := limit.Rate{
			Count:  rapid.Uint64Range(1, 1<<40).Draw(t, "count"),
			Period: time.Duration(rapid.Int64Range(1, 1e6).Draw(t, "seconds")) * time.Second,
			Burst:  rapid.Uint64Range(0, 1000).Draw(t, "burst"),
			Local:  rapid.Bool().Draw(t, "local"),
		}
		if got, err := limit.ParseRate(r.String()); r.Check() == nil && (err != nil || got != r) {
			t.Fatalf("%s reads as %v, %v", r, got, err)
		}
	})
}

func TestSettings(t *testing.T) {
	type config struct {
		Rate  *limit.Rate            `set:"rate"`
		Limit limit.Limit            `set:"limit" default:"32"`
		More  map[string]limit.Limit `set:"more"`
	}
	var c config
	err := settings.Decode("x", map[string]any{"rate": "1,000/hr", "more": map[string]any{
		"a": 20.0, "b": "local:1_000", "c": int64(3), "d": "7"}}, &c)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(settings.Encode(c).TOML()); got != "rate = \"1000/h\"\nlimit = 32\n\n[more]\na = 20\nb = \"local:1000\"\nc = 3\nd = 7\n" {
		t.Error(got)
	}
	for give, want := range map[any]string{
		0.0:     `x: setting "limit": invalid limit 0: must be greater than 0`,
		-1.0:    `x: setting "limit": invalid limit -1: must be greater than 0`,
		1.5:     `x: setting "limit": expected a limit, got a number 1.5`,
		true:    `x: setting "limit": expected a limit, got a bool true`,
		"0":     `x: setting "limit": invalid limit "0", want for example 32 or "local:1,000"`,
		"local": `x: setting "limit": invalid limit "local", want for example 32 or "local:1,000"`,
	} {
		if got := fmt.Sprint(settings.Decode("x", map[string]any{"limit": give}, &c)); got != want {
			t.Errorf("TH-6 %v: %s", give, got)
		}
	}
	err = settings.Decode("x", map[string]any{"rate": 5.0}, &c)
	if got := fmt.Sprint(err); got != `x: setting "rate": expected a throttle-spec, got a number 5` {
		t.Error(got)
	}
}

func FuzzRate(f *testing.F) {
	for _, s := range []string{"100/s", "local:1,000/hr", "20/30min,max_burst=5", "18446744073709551615/d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := limit.ParseRate(s)
		if err != nil {
			return
		}
		if again, err := limit.ParseRate(r.String()); err != nil || again != r {
			t.Errorf("%q prints as %s, reads as %v, %v", s, r, again, err)
		}
		k := limit.NewLocal()
		if res, err := k.Take(t.Context(), "k", r, 1); err != nil || res.Throttled {
			t.Errorf("%s: the first take: %+v %v", r, res, err)
		}
	})
}
