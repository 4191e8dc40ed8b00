package route

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"example.com/svc/mta/dns"
)

// Host is one place mail can go to.
type Host struct {
	// Name is lower case without trailing dot. For an address literal it is the
	// address, for a list entry "[ip]" too.
	Name string
	// Pref is the preference; hosts of equal Pref are equally good.
	Pref int
	// Port is the port asked for, 0 if none was (flows SC-7).
	Port uint16
	// Addr is the address if it is given and need not be looked up.
	Addr netip.Addr
}

// Plan is where mail for a domain goes. It is shared and must not be changed.
type Plan struct {
	// Domain is the domain in canonical form, without port. Empty for a list.
	Domain string
	// Site names the hosts (flows SC-2, QN-4).
	Site string
	// Hosts are in the order to try: by preference, then by name.
	Hosts []Host
	// NullMX says that the domain takes no mail (RFC 7505, flows SC-5).
	NullMX bool
	// Literal says that the domain is an address literal.
	Literal bool
	// IsMX says that the hosts come from MX records.
	IsMX bool
	// Secure says that DNSSEC vouches for the choice of hosts.
	Secure bool
	// Expires is when to plan anew.
	Expires time.Time

	relative bool // names are the operator's: search list and hosts file apply
}

// foreverTTL is the life of plans that do not come from the DNS.
const foreverTTL = 24 * time.Hour

// cacheKey brings domain into the form it is remembered under.
func cacheKey(domain string) (key string, port uint16, err error) {
	name, port, _ := cutPort(domain)
	if strings.HasPrefix(name, "[") {
		return name, port, nil
	}
	n, err := hostName(name)
	if err != nil {
		var e *dns.Error
		if errors.As(err, &e) {
			err = e.Err
		}
		return "", 0, &dns.Error{Name: clip(domain), Type: dns.TypeMX, Kind: dns.BadName, Err: err}
	}
	return withPort(n, port), port, nil
}

func clip(s string) string {
	if len(s) > 300 {
		return s[:300]
	}
	return s
}

// resolve makes the plan for a key made by cacheKey.
func (p *Planner) resolve(ctx context.Context, key string, port uint16) (*Plan, error) {
	name := key
	if port != 0 {
		name, _, _ = cutPort(key)
	}
	now := time.Now()
	res, err := dns.LookupMX(ctx, p.cfg.Resolver, name)
	if err != nil {
		return nil, err
	}
	plan := &Plan{
		Domain: res.Domain, NullMX: res.NullMX, Literal: res.Literal,
		IsMX: res.IsMX, Secure: res.Secure, Expires: now.Add(res.TTL),
	}
	if res.Literal {
		plan.Expires = now.Add(foreverTTL)
	}
	hosts := res.Hosts[:min(len(res.Hosts), p.cfg.MaxHosts)]
	plan.Hosts = make([]Host, len(hosts))
	names := make([]string, len(hosts))
	for i, h := range hosts {
		plan.Hosts[i] = Host{Name: h.Host, Pref: int(h.Pref), Port: port, Addr: res.Addr}
		names[i] = withPort(h.Host, port)
	}
	plan.Site = SiteName(names)
	if plan.NullMX {
		plan.Site = withPort(plan.Domain, port)
	}
	return plan, nil
}

// PlanList makes a plan from mx_list (flows SC-4): the entries in the order
// given, each a preference level of its own. Its site is "mx_list:" and the
// entries with commas between (flows QN-4).
func (p *Planner) PlanList(entries []MXEntry) *Plan {
	plan := &Plan{
		Hosts:    make([]Host, len(entries)),
		Expires:  time.Now().Add(foreverTTL),
		relative: true,
	}
	var site strings.Builder
	site.WriteString("mx_list:")
	for i, e := range entries {
		h := Host{Name: e.Name, Pref: i, Port: e.Port, Addr: e.Addr}
		if h.Name == "" && h.Addr.IsValid() {
			h.Name = h.Addr.String()
		}
		plan.Hosts[i] = h
		if i > 0 {
			site.WriteByte(',')
		}
		site.WriteString(e.String())
	}
	plan.Site = site.String()
	return plan
}
