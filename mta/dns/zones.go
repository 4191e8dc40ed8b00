package dns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	wire "github.com/miekg/dns"
)

const (
	maxZoneText    = 16 << 20
	defaultZoneTTL = 5 * time.Minute // for records and absences without a TTL of their own
	maxZoneRecords = 1 << 20
)

// Zone is the text of one zone.
type Zone struct {
	// Text is in master file format (RFC 1035 section 5). $INCLUDE is refused.
	Text string
	// Secure says that answers count as validated by DNSSEC.
	Secure bool
}

// Zones is a Resolver over zone text in memory: the resolver "Test" of
// settings svc.dns.define_resolver. It is immutable. A name outside all zones
// does not exist. Wildcards are served (RFC 4592), delegations and DNAME are not.
type Zones struct {
	nodes    map[string]*node
	zones    map[string]*zoneInfo // by apex
	servfail map[string]struct{}
}

var _ Resolver = (*Zones)(nil)

// node is a name that exists, perhaps only as the parent of others.
type node struct {
	sets   map[Type]*rrset
	cname  string // target of the alias
	cttl   time.Duration
	secure bool
}

type rrset struct {
	recs []Record
	ttl  time.Duration
}

type zoneInfo struct {
	negative time.Duration
	secure   bool
}

// NewZones reads the zones. The error names the zone by its place in the list,
// and the line. Lookups of the names in servfail fail with kind ServFail.
func NewZones(texts []Zone, servfail []string) (*Zones, error) {
	z := &Zones{
		nodes:    make(map[string]*node),
		zones:    make(map[string]*zoneInfo),
		servfail: make(map[string]struct{}, len(servfail)),
	}
	for i, t := range texts {
		if err := z.add(t); err != nil {
			return nil, fmt.Errorf("dns: zone %d: %w", i+1, err)
		}
	}
	for _, name := range servfail {
		n, err := Canonical(name)
		if err != nil {
			return nil, fmt.Errorf("dns: servfail: %w", err)
		}
		z.servfail[n] = struct{}{}
	}
	return z, nil
}

func (z *Zones) add(t Zone) error {
	if len(t.Text) > maxZoneText {
		return fmt.Errorf("text of %d octets is too long", len(t.Text))
	}
	zp := wire.NewZoneParser(strings.NewReader(t.Text), ".", "")
	zp.SetDefaultTTL(uint32(defaultZoneTTL / time.Second))
	info := &zoneInfo{negative: defaultZoneTTL, secure: t.Secure}
	apex, common, count := "", "", 0
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		if count++; count > maxZoneRecords {
			return errors.New("too many records")
		}
		owner := fold(rr.Header().Name)
		if count == 1 {
			common = owner
		}
		common = commonParent(common, owner)
		if soa, ok := rr.(*wire.SOA); ok {
			apex = owner
			// RFC 2308 section 4
			info.negative = time.Duration(min(soa.Hdr.Ttl, soa.Minttl)) * time.Second
		}
		if err := z.addRecord(owner, rr, t.Secure); err != nil {
			return err
		}
	}
	if err := zp.Err(); err != nil {
		return err
	}
	if apex == "" {
		apex = common // without SOA: the name all records lie below
	}
	if apex != "" {
		z.zones[apex] = info
	}
	return nil
}

func (z *Zones) addRecord(owner string, rr wire.RR, secure bool) error {
	n := z.touch(owner)
	n.secure = secure
	ttl := time.Duration(rr.Header().Ttl) * time.Second
	if c, ok := rr.(*wire.CNAME); ok {
		if n.cname != "" && n.cname != fold(c.Target) {
			return fmt.Errorf("%s: several aliases for one name", owner) // RFC 2181 section 10.1
		}
		n.cname, n.cttl = fold(c.Target), ttl
	}
	qtype := Type(rr.Header().Rrtype)
	if !qtype.served() {
		return nil // the name exists; its other data is of no use here
	}
	rec, ok := record(rr)
	if !ok {
		return fmt.Errorf("%s: unusable data: %s", owner, rr)
	}
	set := n.sets[qtype]
	if set == nil {
		set = &rrset{ttl: ttl}
		if n.sets == nil {
			n.sets = make(map[Type]*rrset)
		}
		n.sets[qtype] = set
	}
	set.recs = append(set.recs, rec)
	set.ttl = min(set.ttl, ttl)
	return nil
}

// touch makes name and all its parents exist (RFC 4592 section 2.2.2).
func (z *Zones) touch(name string) *node {
	n := z.nodes[name]
	if n != nil {
		return n
	}
	n = &node{}
	z.nodes[name] = n
	if up, ok := parent(name); ok {
		z.touch(up)
	}
	return n
}

// Lookup answers from the zones.
func (z *Zones) Lookup(ctx context.Context, name string, qtype Type) (Answer, error) {
	asked, _, err := canonical(name, qtype)
	if err != nil {
		return Answer{}, err
	}
	if err := ctx.Err(); err != nil {
		return Answer{}, contextError(asked, qtype, err)
	}
	ans := Answer{Name: asked, TTL: 7 * 24 * time.Hour, Secure: true}
	fail := func(k Kind) (Answer, error) {
		e := &Error{Name: asked, Type: qtype, Kind: k}
		if k == NXDomain || k == NoData {
			info := z.zoneOf(ans.Name)
			e.TTL, e.Secure = min(ans.TTL, info.negative), ans.Secure && info.secure
		}
		return Answer{}, e
	}
	for {
		if _, bad := z.servfail[ans.Name]; bad {
			return fail(ServFail)
		}
		n := z.find(ans.Name)
		if n == nil {
			return fail(NXDomain)
		}
		if set := n.sets[qtype]; set != nil {
			ans.Records, ans.TTL = set.recs, min(ans.TTL, set.ttl)
			ans.Secure = ans.Secure && n.secure
			return ans, nil
		}
		if n.cname == "" {
			return fail(NoData)
		}
		ans.Aliases = append(ans.Aliases, ans.Name)
		ans.TTL = min(ans.TTL, n.cttl)
		ans.Secure = ans.Secure && n.secure
		ans.Name = n.cname
		if len(ans.Aliases) > maxChain || slices.Contains(ans.Aliases, ans.Name) {
			return fail(Loop)
		}
	}
}

// find returns the node of name, or the wildcard that stands for it: the one
// directly below the longest parent that exists (RFC 4592 section 3.3.1).
func (z *Zones) find(name string) *node {
	if n := z.nodes[name]; n != nil {
		return n
	}
	for up, ok := parent(name); ok; up, ok = parent(up) {
		if z.nodes[up] != nil {
			if up == "." {
				return z.nodes["*"]
			}
			return z.nodes["*."+up]
		}
	}
	return nil
}

// zoneOf returns the closest zone name lies in.
func (z *Zones) zoneOf(name string) zoneInfo {
	for ok := true; ok; name, ok = parent(name) {
		if info := z.zones[name]; info != nil {
			return *info
		}
	}
	return zoneInfo{negative: defaultZoneTTL}
}

// parent returns name without its first label. ok is false for the root. Dots
// in labels are escaped and do not count.
func parent(name string) (up string, ok bool) {
	if name == "." {
		return "", false
	}
	if i, end := wire.NextLabel(name, 0); !end {
		return name[i:], true
	}
	return ".", true
}

// commonParent returns the longest name both a and b lie at or below.
func commonParent(a, b string) string {
	for a != b && a != "." {
		if len(a) >= len(b) {
			a, _ = parent(a)
		} else {
			b, _ = parent(b)
			if b == "." {
				return "."
			}
		}
	}
	return a
}
