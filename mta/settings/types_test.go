package settings_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"example.com/svc/mta/settings"
)

func TestDuration(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		give  any
		want  time.Duration
		print string
	}{
		{5.0, 5 * time.Second, "5s"},
		{int64(5), 5 * time.Second, "5s"},
		{1.5, 1500 * time.Millisecond, "1s 500ms"},
		{0.0, 0, "0s"},
		{"5m", 5 * time.Minute, "5m"},
		{"1 hour", time.Hour, "1h"},
		{"2m 30s", 150 * time.Second, "2m 30s"},
		{"2m30s", 150 * time.Second, "2m 30s"},
		{"500ms", 500 * time.Millisecond, "500ms"},
		{"7 days", 7 * day, "7days"},
		{"1w", 7 * day, "7days"},
		{"24h", day, "1day"},
		{"172.8 s", 172800 * time.Millisecond, "2m 52s 800ms"},
		{"1M", 2630016 * time.Second, "1month"},
		{"2y", 2 * 31557600 * time.Second, "2years"},
		{"1.5 us 1nsec", 1501, "1us 501ns"},
		{"0.1s", 100 * time.Millisecond, "100ms"},
		{"0.30000000000000000000000000001s", 300 * time.Millisecond, "300ms"},
		{time.Minute, time.Minute, "1m"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.give), func(t *testing.T) {
			var d settings.Duration
			if err := d.UnmarshalSetting(tt.give); err != nil || d.D() != tt.want || d.String() != tt.print {
				t.Errorf("got %v %v %q, want %v %q", err, d.D(), d.String(), tt.want, tt.print)
			}
		})
	}
	for _, bad := range []any{"", "5", "m", "5 x", "1.m", ".5m", "-5m", "5m,", "5 M s", "5D", "300y", "99999999999999999999s",
		-1.0, 1e10, nil, true, -time.Second, "5m 3"} {
		var d settings.Duration
		if err := d.UnmarshalSetting(bad); err == nil {
			t.Errorf("%v was read as %v", bad, d)
		}
	}
}

func TestDurationReadsWhatItPrints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Min(0).Draw(t, "d"))
		if got, err := settings.ParseDuration(settings.FormatDuration(d)); err != nil || got != d {
			t.Fatalf("%d: %v %v", d, got, err)
		}
	})
}

func TestCIDRs(t *testing.T) {
	var c settings.CIDRs
	if err := c.UnmarshalSetting([]any{"10.0.0.0/8", "2001:db8::/32", "::ffff:192.0.2.0/120"}); err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]bool{"10.1.2.3": true, "::ffff:10.1.2.3": true, "11.0.0.1": false, "2001:db8::1%eth0": true,
		"192.0.2.9": true, "::1": false} {
		if c.Contains(netip.MustParseAddr(addr)) != want {
			t.Errorf("%s: want %v", addr, want)
		}
	}
	if (settings.CIDRs)(nil).Contains(netip.Addr{}) {
		t.Error("nothing contains something")
	}
	for _, bad := range []string{"", "10.0.0.0/33", "10.0.0/8", "fe80::1%eth0", "x", "10.0.0.0/", "/8"} {
		if p, err := settings.ParseCIDR(bad); err == nil {
			t.Errorf("%q was read as %v", bad, p)
		}
	}
}

func TestFreeSpace(t *testing.T) {
	f, err := settings.ParseFreeSpace("10%")
	if err != nil || !f.Enough(10, 100) || f.Enough(9, 100) || !f.Enough(1<<62, 1<<63) {
		t.Error(f, err)
	}
	f, err = settings.ParseFreeSpace("50")
	if err != nil || !f.Enough(50, 1000) || f.Enough(49, 49) || f.String() != "50" {
		t.Error(f, err)
	}
	for _, bad := range []string{"", "%", "-1", "1.5%", "10 %", "x"} {
		if _, err := settings.ParseFreeSpace(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestHostPort(t *testing.T) {
	for give, ok := range map[string]bool{"mx.example.com:25": true, "[::1]:25": true, "10.0.0.1:25": true, "a:0": true,
		"bad host:25": false, "a": false, ":25": false, "a:65536": false, "a..b:1": false, "a:smtp": false, "": false} {
		var h settings.HostPort
		err := h.UnmarshalText([]byte(give))
		if (err == nil) != ok || ok && h.String() != give {
			t.Errorf("%q: %v %v", give, h, err)
		}
	}
}

type loader struct{}

func (loader) LoadVault(_ context.Context, k settings.VaultKey) ([]byte, error) {
	return []byte(k.Mount + "," + k.Path + "," + k.Key), nil
}

func (loader) LoadEvent(_ context.Context, k settings.EventKey) ([]byte, error) {
	return fmt.Appendf(nil, "%s%v", k.Name, k.Args), nil
}

func TestKeySource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("from file"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		give any
		want string
	}{
		{path, "from file"},
		{tree{"key_data": "inline"}, "inline"},
		{tree{"vault_mount": "m", "vault_path": "p", "vault_token": "t"}, "m,p,key"},
		{tree{"event_name": "e", "event_args": []any{"a", 1.0}}, "e[a 1]"},
	}
	for _, tt := range tests {
		var k settings.KeySource
		if err := k.UnmarshalSetting(tt.give); err != nil || k.IsZero() {
			t.Fatal(err)
		}
		if got, err := k.Load(t.Context(), loader{}); err != nil || string(got) != tt.want {
			t.Errorf("%v: %q %v", k, got, err)
		}
		_, err := k.Load(t.Context(), nil)
		if remote := k.Vault != nil || k.Event != nil; errors.Is(err, settings.ErrNoLoader) != remote {
			t.Errorf("%v without a loader: %v", k, err)
		}
	}
	big := settings.KeySource{Path: path}
	if err := os.WriteFile(path, make([]byte, settings.MaxKeySize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := big.Load(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Error(err)
	}
	if _, err := (settings.KeySource{}).Load(t.Context(), nil); err == nil {
		t.Error("an unset source was loaded")
	}
}

func TestEpoch(t *testing.T) {
	var e settings.Epoch
	changed, cancel := e.Subscribe()
	other, cancelOther := e.Subscribe()
	cancelOther()
	cancelOther()
	if e.Bump() != 1 || e.Bump() != 2 || e.Current() != 2 {
		t.Error("miscounted:", e.Current())
	}
	<-changed
	select {
	case <-changed:
		t.Error("two bumps were not joined")
	case <-other:
		t.Error("told after cancel")
	default:
	}
	e.Bump()
	<-changed
	cancel()
}

func TestNearest(t *testing.T) {
	names := []string{"max_age", "max_ready", "egress_pool"}
	for give, want := range map[string]string{"max_agee": "max_age", "max-age": "max_age", "amx_age": "max_age", "Max_Ready": "max_ready",
		"retry": "", "": "", strings.Repeat("x", 100): ""} {
		if got := settings.Nearest(give, names); got != want {
			t.Errorf("%q: %q, want %q", give, got, want)
		}
	}
}
