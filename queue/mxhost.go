package queue

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"example.com/svc/mta/settings"
)

// MXHost is one entry of mx_list (flows SC-4). Its text forms are "name", "name:port", "[ip]" and "[ip]:port"; in
// settings it may also be a table with name and addr, where addr is an address with or without port. Its fields are
// those of route.MXEntry, into which it converts.
type MXHost struct {
	// Name is the host name, in lower case without trailing dot. For "[ip]" it is empty.
	Name string
	// Addr is the address; the zero Addr means that Name is looked up.
	Addr netip.Addr
	// Port is the port, 0 if none was given.
	Port uint16
}

// UnmarshalSetting reads a text form, or a table of name and addr.
func (h *MXHost) UnmarshalSetting(v any) error {
	switch v := v.(type) {
	case string:
		return h.UnmarshalText([]byte(v))
	case map[string]any:
		return h.fromTable(v)
	}
	return settings.Expected("a host, or a table with name and addr", v)
}

// UnmarshalText reads the text forms. On error h is unchanged.
func (h *MXHost) UnmarshalText(text []byte) error {
	host, port, err := cutPort(string(text))
	if err != nil {
		return hostError(string(text), err)
	}
	if strings.HasPrefix(host, "[") {
		a, err := parseAddr(host)
		if err != nil {
			return hostError(string(text), err)
		}
		*h = MXHost{Addr: a, Port: port}
		return nil
	}
	name, err := hostName(host)
	if err != nil {
		return hostError(string(text), err)
	}
	*h = MXHost{Name: name, Port: port}
	return nil
}

func hostError(s string, err error) error {
	return fmt.Errorf("invalid mx_list entry %.100q: %w", s, err)
}

func (h *MXHost) fromTable(t map[string]any) error {
	for k := range t {
		if k != "name" && k != "addr" {
			return fmt.Errorf("mx_list entry has the unknown key %q (known: addr, name)", k)
		}
	}
	name, ok1 := t["name"].(string)
	addr, ok2 := t["addr"].(string)
	if !ok1 || !ok2 {
		return errors.New("mx_list entry needs the strings name and addr")
	}
	name, err := hostName(name)
	if err != nil {
		return hostError(name, err)
	}
	if a, err := parseAddr(addr); err == nil { // a bare IPv6 address has colons of its own
		*h = MXHost{Name: name, Addr: a}
		return nil
	}
	host, port, err := cutPort(addr)
	if err != nil {
		return hostError(addr, err)
	}
	a, err := parseAddr(host)
	if err != nil {
		return hostError(addr, err)
	}
	*h = MXHost{Name: name, Addr: a, Port: port}
	return nil
}

// cutPort splits ":port" off; 0 when there is none.
func cutPort(s string) (host string, port uint16, err error) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || i < strings.LastIndexByte(s, ']') {
		return s, 0, nil
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("bad port %.20q", s[i+1:])
	}
	return s[:i], uint16(n), nil
}

// parseAddr reads an address, with or without brackets, also in the form of a literal (RFC 5321 section 4.1.3).
func parseAddr(s string) (netip.Addr, error) {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if s, ok = strings.CutSuffix(inner, "]"); !ok {
			return netip.Addr{}, errors.New("missing closing bracket")
		}
		if len(s) > 5 && strings.EqualFold(s[:5], "IPv6:") {
			s = s[5:]
		}
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("bad address %.50q", s)
	}
	if a.Zone() != "" {
		return netip.Addr{}, errors.New("address with a zone")
	}
	return a.Unmap(), nil
}

// hostName returns the canonical form of a host name (RFC 1035 section 2.3.4, RFC 1123 section 2.1).
func hostName(s string) (string, error) {
	name := strings.ToLower(strings.TrimSuffix(s, "."))
	if name == "" || len(name) > 253 {
		return "", errors.New("a host name has 1 to 253 characters")
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return "", errors.New("a label of a host name has 1 to 63 characters")
		}
		if label[0] == '-' || strings.ContainsFunc(label, isNoHostRune) {
			return "", fmt.Errorf("%.70q is no label of a host name", label)
		}
	}
	return name, nil
}

func isNoHostRune(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_')
}

// String returns the text form; of an entry with name and address the name stands.
func (h MXHost) String() string {
	s := h.Name
	if s == "" && h.Addr.IsValid() {
		s = "[" + h.Addr.String() + "]"
	}
	if h.Port != 0 {
		s += ":" + strconv.Itoa(int(h.Port))
	}
	return s
}

// MarshalSetting prints the text form, or a table when there are both name and address.
func (h MXHost) MarshalSetting() any {
	if h.Name == "" || !h.Addr.IsValid() {
		return h.String()
	}
	addr := h.Addr.String()
	if h.Port != 0 {
		addr = netip.AddrPortFrom(h.Addr, h.Port).String()
	}
	return settings.Map{{Key: "name", Value: h.Name}, {Key: "addr", Value: addr}}
}

// SettingType names the syntax for descriptions and errors.
func (MXHost) SettingType() string { return "string or {name, addr}" }
