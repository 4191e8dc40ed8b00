package dns_test

import (
	"net/netip"
	"testing"

	"example.com/svc/mta/dns"
)

func TestLookupRBL(t *testing.T) {
	z, err := dns.NewZones([]dns.Zone{{Text: `
$ORIGIN list.test.
2.0.0.127 60 IN A 127.0.0.4
2.0.0.127 60 IN A 127.0.0.2
2.0.0.127 60 IN TXT "test entry"
3.0.0.127 60 IN A 127.0.0.2
`}}, []string{"4.0.0.127.list.test", "9.0.0.127.list.test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ip, listed, reason string
		kind               dns.Kind
	}{
		{ip: "127.0.0.2", listed: "127.0.0.2", reason: "test entry"},
		{ip: "::ffff:127.0.0.2", listed: "127.0.0.2", reason: "test entry"},
		{ip: "127.0.0.3", listed: "127.0.0.2"},
		{ip: "127.0.0.1"},
		{ip: "2001:db8::1"},
		{ip: "127.0.0.4", kind: dns.ServFail},
	} {
		listed, reason, err := dns.LookupRBL(t.Context(), z, netip.MustParseAddr(c.ip), "list.test")
		if kind(err) != c.kind || reason != c.reason || listed.IsValid() != (c.listed != "") || listed.IsValid() && listed.String() != c.listed {
			t.Errorf("%s: %v %q %v", c.ip, listed, reason, err)
		}
	}
	if _, _, err := dns.LookupRBL(t.Context(), z, netip.Addr{}, "list.test"); kind(err) != dns.BadName {
		t.Error(err)
	}
	if _, _, err := dns.LookupRBL(t.Context(), z, netip.MustParseAddr("127.0.0.2"), "a b"); kind(err) != dns.BadName {
		t.Error(err)
	}
}
