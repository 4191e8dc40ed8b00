package route

import (
	"fmt"
	"net/netip"
	"strings"

	"example.com/svc/mta/dns"
	"example.com/svc/mta/settings"
)

// MXEntry is one entry of mx_list (flows SC-4). Its text forms are "name",
// "name:port", "[ip]" and "[ip]:port"; in settings it may also be a table with
// name and addr, where addr is an address with or without port.
type MXEntry struct {
	// Name is the host name, lower case without trailing dot. For "[ip]" it is empty.
	Name string
	// Addr is the address; the zero Addr means that Name is looked up.
	Addr netip.Addr
	// Port is the port, 0 if none was given.
	Port uint16
}

// ParseMXEntry reads the text forms.
func ParseMXEntry(s string) (MXEntry, error) {
	var e MXEntry
	err := e.UnmarshalText([]byte(s))
	return e, err
}

// UnmarshalText reads the text forms. On error e is unchanged.
func (e *MXEntry) UnmarshalText(b []byte) error {
	s := string(b)
	name, port, _ := cutPort(s)
	if strings.HasPrefix(name, "[") {
		ip, err := dns.ParseLiteral(name)
		if err != nil {
			return entryError(s)
		}
		*e = MXEntry{Addr: ip, Port: port}
		return nil
	}
	if strings.ContainsAny(name, ":,") {
		return entryError(s)
	}
	n, err := hostName(name)
	if err != nil {
		return fmt.Errorf("%w: %w", entryError(s), err)
	}
	*e = MXEntry{Name: n, Port: port}
	return nil
}

func entryError(s string) error {
	if len(s) > 300 {
		s = s[:300]
	}
	return fmt.Errorf("invalid mx_list entry %q, want \"name\", \"name:port\", \"[ip]\" or \"[ip]:port\"", s)
}

// hostName returns the canonical form of a host name with the characters of
// one (R3).
func hostName(s string) (string, error) {
	n, err := dns.Canonical(s)
	if err != nil {
		return "", err
	}
	for i := 0; i < len(n); i++ {
		c := n[i]
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') || n == "." {
			return "", fmt.Errorf("%q is not a host name", n)
		}
	}
	return n, nil
}

// UnmarshalSetting reads a text form, or a table of name and addr.
func (e *MXEntry) UnmarshalSetting(v any) error {
	switch v := v.(type) {
	case string:
		return e.UnmarshalText([]byte(v))
	case map[string]any:
		return e.fromTable(v)
	}
	return settings.Expected("a string, or a table with name and addr", v)
}

func (e *MXEntry) fromTable(t map[string]any) error {
	for k := range t {
		if k != "name" && k != "addr" {
			return fmt.Errorf("unknown setting %q in an mx_list entry (known: addr, name)", k)
		}
	}
	name, ok1 := t["name"].(string)
	addr, ok2 := t["addr"].(string)
	if !ok1 || !ok2 {
		return fmt.Errorf("an mx_list entry given as a table needs the strings name and addr")
	}
	var out MXEntry
	var err error
	if out.Name, err = hostName(name); err != nil {
		return fmt.Errorf("mx_list entry: name: %w", err)
	}
	if ip, err := netip.ParseAddr(addr); err == nil {
		out.Addr = ip
	} else if host, port, ok := cutPort(addr); ok {
		ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
		if err != nil {
			return fmt.Errorf("mx_list entry: invalid addr %q", addr)
		}
		out.Addr, out.Port = ip, port
	} else if out.Addr, err = dns.ParseLiteral(addr); err != nil {
		return fmt.Errorf("mx_list entry: invalid addr %q", addr)
	}
	if out.Addr.Zone() != "" {
		return fmt.Errorf("mx_list entry: addr %q has a zone", addr)
	}
	out.Addr = out.Addr.Unmap()
	*e = out
	return nil
}

// String returns the text form; of an entry with name and address the name
// stands. The site of a list is made of it (flows QN-4).
func (e MXEntry) String() string {
	name := e.Name
	if name == "" && e.Addr.IsValid() {
		name = "[" + e.Addr.String() + "]"
	}
	return withPort(name, e.Port)
}

// MarshalSetting returns what UnmarshalSetting reads: the text form, or a table.
func (e MXEntry) MarshalSetting() any {
	if e.Name == "" || !e.Addr.IsValid() {
		return e.String()
	}
	addr := e.Addr.String()
	if e.Port != 0 {
		addr = withPort(addr, e.Port)
	}
	return settings.Map{{Key: "name", Value: e.Name}, {Key: "addr", Value: addr}}
}
