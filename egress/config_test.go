package egress

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta/settings"
)

func TestPathDefaults(t *testing.T) {
	c := settings.New[PathConfig]()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.ConnectionLimit.N != 32 || c.MaxReady != 1024 || c.MaxDeliveries != 1024 || c.MaxRecipients != 100 {
		t.Errorf("TO-2: %+v", c)
	}
	if c.DataTimeout.D() != 300*time.Second || c.DataDotTimeout.D() != 600*time.Second || c.IdleTimeout.D() != time.Minute {
		t.Errorf("choices 3: data %s, dot %s, idle %s", c.DataTimeout, c.DataDotTimeout, c.IdleTimeout)
	}
	for _, a := range []string{"127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::"} {
		if !c.ProhibitedHosts.Contains(netip.MustParseAddr(a)) {
			t.Errorf("SC-5: %s is not prohibited", a)
		}
	}
	if c.ProhibitedHosts.Contains(netip.MustParseAddr("192.0.2.1")) {
		t.Error("SC-5: 192.0.2.1 is prohibited")
	}
	if got := c.watchdogTimeout(); got != 1200*time.Second {
		t.Errorf("RQ-16: watchdog after %s", got)
	}
	if got := c.shutdownTimeout(); got != 1500*time.Second {
		t.Errorf("SD-2: shutdown after %s", got)
	}
	if got := c.leaseTTL(); got != 1985*time.Second {
		t.Errorf("RQ-6: lease for %s", got)
	}
}

func TestPathDecode(t *testing.T) {
	tests := []struct {
		name, json, want string
	}{
		{"all kinds", `{"connection_limit":"local:5","max_message_rate":"10/s","prohibited_hosts":[],"enable_tls":"Required",
			"additional_connection_limits":{"p":3},"system_shutdown_timeout":"5s"}`, ""},
		{"false for what is off", `{"enable_dane":false,"enable_mta_sts":false,"use_lmtp":false}`, ""},
		{"dane", `{"enable_dane":true}`, "enable_dane"},
		{"mta-sts", `{"enable_mta_sts":true}`, "enable_mta_sts"},
		{"lmtp", `{"use_lmtp":true}`, "use_lmtp"},
		{"auth", `{"smtp_auth_plain_username":"x"}`, "not served yet"},
		{"certificate", `{"tls_certificate":"/x"}`, "not served yet"},
		{"unknown", `{"conection_limit":1}`, "connection_limit"},
		{"enum", `{"enable_tls":"Maybe"}`, "enable_tls"},
		{"limit 0", `{"connection_limit":0}`, "connection_limit"},
		{"max_ready 0", `{"max_ready":0}`, "max_ready"},
		{"own names", `{"additional_connection_limits":{"svc.x":1}}`, "svc."},
		{"own names of rates", `{"additional_message_rate_throttles":{"svc.x":"1/s"}}`, "svc."},
		{"port", `{"smtp_port":0}`, "smtp_port"},
		{"timeout 0", `{"data_dot_timeout":0}`, "data_dot_timeout"},
		{"strategy of another setting", `{"ip_lookup_strategy":"Ipv6AndIpv4"}`, "ip_lookup_strategy"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c PathConfig
			err := settings.DecodeJSON("path", []byte(tt.json), &c)
			if tt.want == "" && err != nil {
				t.Fatal(err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestPoolAndSourceDecode(t *testing.T) {
	var p Pool
	if err := settings.DecodeJSON("pool", []byte(`{"name":"p","entries":[{"name":"a"},{"name":"b","weight":0}]}`), &p); err != nil {
		t.Fatal(err)
	}
	if p.Entries[0].Weight != 1 || p.Entries[1].Weight != 0 || p.TTL.D() != time.Minute {
		t.Errorf("SS-1: %+v", p)
	}
	var s Source
	if err := settings.DecodeJSON("source", []byte(`{"name":"a","source_address":"192.0.2.1","remote_port":26}`), &s); err != nil {
		t.Fatal(err)
	}
	if s.address() != netip.MustParseAddr("192.0.2.1") || *s.RemotePort != 26 {
		t.Errorf("%+v", s)
	}
	for _, bad := range []string{`{"name":""}`, `{"name":"a","remote_port":0}`, `{"name":"a","socks5_proxy_server":"x:1"}`,
		`{"name":"a","source_address":"nope"}`} {
		if err := settings.DecodeJSON("source", []byte(bad), &s); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if err := settings.DecodeJSON("pool", []byte(`{"name":"p","entries":[{"name":"a","weight":-1}]}`), &p); err == nil {
		t.Error("a negative weight was accepted")
	}
}
