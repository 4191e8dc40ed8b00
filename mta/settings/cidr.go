package settings

import (
	"fmt"
	"net/netip"
	"strings"
)

// CIDRs is a list of address blocks. The zero value contains nothing.
type CIDRs []netip.Prefix

// ParseCIDR reads an address block, or a plain address as the block of itself. Host bits must be zero; the error for
// set ones suggests the corrected block. IPv4 in IPv6 form is read as IPv4 (RFC 4291 section 2.5.5.2).
func ParseCIDR(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("invalid address block %q", clip(s))
		}
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("invalid address block %q", clip(s))
	}
	if m := p.Masked(); m != p {
		return netip.Prefix{}, &Error{
			Msg:        fmt.Sprintf("invalid address block %q: host bits are set", s),
			Suggestion: m.String(),
		}
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, nil
}

// Contains says whether one of the blocks contains a; IPv4 in IPv6 form is taken as IPv4.
func (c CIDRs) Contains(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range c {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// UnmarshalSetting reads a list of strings, each as [ParseCIDR].
func (c *CIDRs) UnmarshalSetting(v any) error {
	if m, ok := v.(map[string]any); ok && len(m) == 0 {
		v = []any{}
	}
	list, ok := v.([]any)
	if !ok {
		return Expected("a list of address blocks", v)
	}
	out := make(CIDRs, 0, len(list))
	var faults Errors
	for i, e := range list {
		p, err := readCIDR(e)
		if err != nil {
			f := *faultsIn(err)[0]
			f.Path = fmt.Sprintf("[%d]", i+1)
			faults = append(faults, &f)
			continue
		}
		out = append(out, p)
	}
	if len(faults) > 0 {
		return faults
	}
	*c = out
	return nil
}

func readCIDR(v any) (netip.Prefix, error) {
	s, ok := v.(string)
	if !ok {
		return netip.Prefix{}, Expected("an address block", v)
	}
	return ParseCIDR(s)
}

// MarshalSetting gives the blocks as strings, single addresses without their length.
func (c CIDRs) MarshalSetting() any {
	if c == nil {
		return nil
	}
	out := make([]any, len(c))
	for i, p := range c {
		if p.IsSingleIP() {
			out[i] = p.Addr().String()
		} else {
			out[i] = p.String()
		}
	}
	return out
}

// SettingType is "list<cidr>".
func (CIDRs) SettingType() string { return "list<cidr>" }

// CIDR is one address block; it serves as a map key, as in map[CIDR]T. The zero value contains nothing.
type CIDR struct{ netip.Prefix }

// UnmarshalText reads as [ParseCIDR].
func (c *CIDR) UnmarshalText(text []byte) error {
	p, err := ParseCIDR(string(text))
	if err == nil {
		c.Prefix = p
	}
	return err
}

// SettingType is "cidr".
func (CIDR) SettingType() string { return "cidr" }
