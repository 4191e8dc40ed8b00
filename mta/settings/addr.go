package settings

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// AddrPort is an address and port: "0.0.0.0:25", "[::1]:25". The zero value is invalid (IsValid).
type AddrPort struct{ netip.AddrPort }

// UnmarshalText reads "ip:port".
func (a *AddrPort) UnmarshalText(text []byte) error {
	v, err := netip.ParseAddrPort(string(text))
	if err != nil {
		return fmt.Errorf(`invalid ip:port %q, want for example "127.0.0.1:25" or "[::1]:25"`, clip(string(text)))
	}
	a.AddrPort = v
	return nil
}

// SettingType is "ip:port".
func (AddrPort) SettingType() string { return "ip:port" }

// HostPort is a host and port; the host may be a DNS name or an address. The zero value is unset.
type HostPort struct {
	// Host is without brackets.
	Host string
	Port uint16
}

// UnmarshalText reads "host:port", "[ipv6]:port".
func (h *HostPort) UnmarshalText(text []byte) error {
	host, port, err := net.SplitHostPort(string(text))
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || !goodHost(host) {
		return fmt.Errorf(`invalid host:port %q, want for example "mx.example.com:25"`, clip(string(text)))
	}
	*h = HostPort{Host: host, Port: uint16(n)}
	return nil
}

// goodHost admits addresses and names of letters, digits, "-", "_" and "." within the lengths of RFC 1035 section 2.3.4.
func goodHost(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	if s == "" || len(s) > 253 || strings.Contains(s, "..") || s[0] == '.' {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if len(label) > 63 || !plainLabel(label) {
			return false
		}
	}
	return true
}

func plainLabel(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return r < 0x80 && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// String gives "host:port", with brackets around an IPv6 address; "" for the zero value.
func (h HostPort) String() string {
	if h == (HostPort{}) {
		return ""
	}
	return net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port)))
}

// MarshalText gives the same as String.
func (h HostPort) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// SettingType is "host:port".
func (HostPort) SettingType() string { return "host:port" }
