package route

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// SiteName names a set of hosts (flows SC-2). Hosts are split into labels from
// the right; per position the distinct labels are collected in the order of the
// hosts. One label is written as it is, several as (a|b|c), and "?" follows if
// some host has no label there. A port in "host:port" belongs to the last label,
// an address stands as it is. Trailing dots are dropped, letters lowered. Without
// hosts it is "".
func SiteName(hosts []string) string {
	switch len(hosts) {
	case 0:
		return ""
	case 1:
		return siteHost(hosts[0])
	}
	split := make([][]string, len(hosts))
	depth := 0
	for i, h := range hosts {
		split[i] = siteLabels(siteHost(h))
		depth = max(depth, len(split[i]))
	}
	var b strings.Builder
	labels := make([]string, 0, len(hosts))
	for pos := depth - 1; pos >= 0; pos-- {
		labels = labels[:0]
		short := false
		for _, ls := range split {
			if pos >= len(ls) {
				short = true
				continue
			}
			if l := ls[len(ls)-1-pos]; !slices.Contains(labels, l) {
				labels = append(labels, l)
			}
		}
		writeLabels(&b, labels, short)
		if pos > 0 {
			b.WriteByte('.')
		}
	}
	return b.String()
}

func writeLabels(b *strings.Builder, labels []string, short bool) {
	if len(labels) == 1 {
		b.WriteString(labels[0])
	} else {
		b.WriteByte('(')
		for i, l := range labels {
			if i > 0 {
				b.WriteByte('|')
			}
			b.WriteString(l)
		}
		b.WriteByte(')')
	}
	if short {
		b.WriteByte('?')
	}
}

// siteHost brings one host into the form used in names.
func siteHost(h string) string {
	h = strings.ToLower(h)
	if name, port, ok := cutPort(h); ok {
		return withPort(strings.TrimSuffix(name, "."), port)
	}
	return strings.TrimSuffix(h, ".")
}

// siteLabels splits a host; an address, with or without port, is one label.
func siteLabels(h string) []string {
	name := h
	if n, _, ok := cutPort(h); ok {
		name = n
	}
	if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return []string{h}
	}
	return strings.Split(h, ".")
}

// cutPort splits "name:port" and "[address]:port". An IPv6 address without
// brackets has no port.
func cutPort(s string) (name string, port uint16, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || strings.IndexByte(s[:i], ':') >= 0 && s[i-1] != ']' {
		return s, 0, false
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil || n == 0 || s[i+1] == '+' {
		return s, 0, false
	}
	return s[:i], uint16(n), true
}

// withPort appends the port; an IPv6 address gets brackets.
func withPort(name string, port uint16) string {
	if port == 0 {
		return name
	}
	if strings.IndexByte(name, ':') >= 0 && !strings.HasPrefix(name, "[") {
		name = "[" + name + "]"
	}
	return name + ":" + strconv.Itoa(int(port))
}
