package dns

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"time"

	wire "github.com/miekg/dns"
)

const (
	maxChain   = 8    // aliases followed for one question
	maxRecords = 1024 // records kept of one answer
	udpSize    = 1232 // EDNS0 buffer size that avoids fragments
)

// question is one question as sent.
type question struct {
	id    uint16
	name  string // on the wire: rooted, perhaps in mixed case
	qtype Type
}

// options are the bits of a query.
type options struct{ edns, rd, ad, mixed bool }

// newQuestion draws an id, and the case of the letters if so wanted. The
// generator of math/rand/v2 is seeded by the system and not predictable from
// outside (ChaCha8).
func newQuestion(name string, qtype Type, mixed bool) question {
	q := question{id: uint16(rand.Uint32()), name: absolute(name), qtype: qtype}
	if mixed {
		b := []byte(q.name)
		for i, c := range b {
			if 'a' <= c && c <= 'z' && rand.Uint32()&1 == 1 {
				b[i] = c - 'a' + 'A'
			}
		}
		q.name = string(b)
	}
	return q
}

func (q question) pack(o options) ([]byte, error) {
	m := new(wire.Msg)
	m.Id = q.id
	m.RecursionDesired = o.rd
	m.AuthenticatedData = o.ad // RFC 6840 section 5.7: asks for the AD bit
	m.Question = []wire.Question{{Name: q.name, Qtype: uint16(q.qtype), Qclass: wire.ClassINET}}
	if o.edns {
		m.SetEdns0(udpSize, false) // RFC 6891
	}
	return m.Pack()
}

// Errors of messages that do not answer the question. They are dropped on UDP.
var (
	errNotOurs   = errors.New("message does not answer the question sent")
	errTruncated = errors.New("answer is truncated")
	errNoEDNS    = errors.New("server does not understand EDNS0")
)

// parse reads the answer to q. A message with another id or question, a query,
// and garbage give errNotOurs; a cut one errTruncated. mixed demands the case
// of the question as sent (draft-vixie-dnsext-dns0x20).
func (q question) parse(b []byte, mixed bool) (*wire.Msg, error) {
	m := new(wire.Msg)
	err := m.Unpack(b)
	// The id and the question were read even if a later part is cut.
	if len(b) < 12 || m.Id != q.id || !m.Response || m.Opcode != wire.OpcodeQuery {
		return nil, errNotOurs
	}
	if len(m.Question) == 0 && err == nil && (m.Rcode == wire.RcodeFormatError || m.Rcode == wire.RcodeNotImplemented) {
		return m, nil // servers older than EDNS0 may leave the question out
	}
	// RFC 5452 section 9.1: the question section must be the one sent.
	if len(m.Question) != 1 || m.Question[0].Qtype != uint16(q.qtype) || m.Question[0].Qclass != wire.ClassINET {
		return nil, errNotOurs
	}
	if got := m.Question[0].Name; got != q.name && (mixed || !strings.EqualFold(got, q.name)) {
		return nil, errNotOurs
	}
	if m.Truncated {
		return nil, errTruncated // RFC 2181 section 9: nothing in it is used
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotOurs, err)
	}
	return m, nil
}

// limits are the clamps of TTLs.
type limits struct{ posMin, posMax, negMin, negMax time.Duration }

func (l limits) positive(ttl uint32) time.Duration {
	// RFC 8767 section 4: a TTL with the high bit set is a large one, and capped.
	return max(l.posMin, min(time.Duration(ttl)*time.Second, l.posMax))
}

func (l limits) negative(ttl uint32) time.Duration {
	return max(l.negMin, min(time.Duration(ttl)*time.Second, l.negMax))
}

// part is what one message says. With next set the chain goes on at that name.
type part struct {
	Answer
	next string
}

// extract turns the message m into the answer for name and qtype. Records that
// do not hang on the chain from name are ignored.
func extract(m *wire.Msg, name string, qtype Type, l limits) (part, *Error) {
	fail := func(k Kind, cause error) (part, *Error) {
		return part{}, &Error{Name: name, Type: qtype, Kind: k, Err: cause}
	}
	switch m.Rcode {
	case wire.RcodeSuccess, wire.RcodeNameError:
	case wire.RcodeRefused:
		return fail(Refused, nil)
	case wire.RcodeServerFailure:
		if edeBogus(m) {
			return fail(Bogus, nil)
		}
		return fail(ServFail, nil)
	default:
		return fail(ServFail, fmt.Errorf("server answers %s", wire.RcodeToString[m.Rcode]))
	}
	p := part{Answer: Answer{Name: name, TTL: l.posMax, Secure: m.AuthenticatedData}}
	aliases, dups := cnames(m, qtype)
	if dups != nil {
		return fail(Malformed, dups)
	}
	for {
		found := collect(m, &p, qtype, l)
		if len(p.Records) > 0 {
			return p, nil
		}
		if found {
			return fail(Malformed, errors.New("no usable record in the answer"))
		}
		c, ok := aliases[p.Name]
		if !ok {
			break
		}
		p.Aliases = append(p.Aliases, p.Name)
		p.TTL = min(p.TTL, l.positive(c.Hdr.Ttl))
		p.Name = fold(c.Target)
		if len(p.Aliases) > maxChain || slices.Contains(p.Aliases, p.Name) {
			return fail(Loop, nil)
		}
	}
	soa, referral := authority(m)
	switch {
	case m.Rcode == wire.RcodeNameError:
		return part{}, negative(name, qtype, NXDomain, m, soa, p, l)
	case len(p.Aliases) > 0 && soa == nil:
		p.next = p.Name
		return p, nil
	case soa == nil && referral && !m.Authoritative:
		return fail(ServFail, errors.New("server gives a referral")) // RFC 2308 section 2.2
	}
	return part{}, negative(name, qtype, NoData, m, soa, p, l)
}

// negative makes the error for a name or type that does not exist. Without SOA
// it must not be remembered (RFC 2308 section 5).
func negative(name string, qtype Type, k Kind, m *wire.Msg, soa *wire.SOA, p part, l limits) *Error {
	e := &Error{Name: name, Type: qtype, Kind: k, Secure: m.AuthenticatedData}
	if soa != nil {
		e.TTL = min(p.TTL, l.negative(min(soa.Hdr.Ttl, soa.Minttl)))
	}
	return e
}

// cnames indexes the aliases of the answer section by owner. Two different
// aliases of one name are an error (RFC 2181 section 10.1), and one that leads
// nowhere.
func cnames(m *wire.Msg, qtype Type) (map[string]*wire.CNAME, error) {
	if qtype == TypeCNAME {
		return nil, nil
	}
	var out map[string]*wire.CNAME
	for _, rr := range m.Answer {
		c, ok := rr.(*wire.CNAME)
		if !ok || c.Hdr.Class != wire.ClassINET {
			continue
		}
		if c.Target == "" { // no data at all, which the library lets through
			return nil, errors.New("alias without target")
		}
		owner := fold(c.Hdr.Name)
		if old, ok := out[owner]; ok && fold(old.Target) != fold(c.Target) {
			return nil, errors.New("several aliases for one name")
		}
		if out == nil {
			out = make(map[string]*wire.CNAME, 4)
		}
		out[owner] = c
	}
	return out, nil
}

// collect adds the records of p.Name to p. found says that there were some,
// usable or not.
func collect(m *wire.Msg, p *part, qtype Type, l limits) (found bool) {
	for _, rr := range m.Answer {
		h := rr.Header()
		if h.Rrtype != uint16(qtype) || h.Class != wire.ClassINET || fold(h.Name) != p.Name {
			continue
		}
		found = true
		if len(p.Records) == maxRecords {
			break
		}
		if rec, ok := record(rr); ok {
			p.Records = append(p.Records, rec)
			p.TTL = min(p.TTL, l.positive(h.Ttl))
		}
	}
	return found
}

// record converts one resource record. ok is false for types that are not
// served and for data nobody can use.
func record(rr wire.RR) (rec Record, ok bool) {
	switch v := rr.(type) {
	case *wire.A:
		rec.Addr, ok = netip.AddrFromSlice(v.A.To4())
	case *wire.AAAA:
		rec.Addr, ok = netip.AddrFromSlice(v.AAAA)
		rec.Addr = rec.Addr.Unmap() // "::ffff:127.0.0.1" must not pass address lists
	case *wire.MX:
		rec.MX.Pref = v.Preference
		rec.MX.Host, ok = hostName(v.Mx)
	case *wire.PTR:
		rec.Host, ok = hostName(v.Ptr)
	case *wire.CNAME:
		rec.Host, ok = fold(v.Target), v.Target != ""
	case *wire.TXT:
		rec.TXT, ok = make([]string, len(v.Txt)), len(v.Txt) > 0
		for i, s := range v.Txt {
			rec.TXT[i] = unescape(s)
		}
	case *wire.TLSA:
		t := &TLSA{Usage: v.Usage, Selector: v.Selector, Matching: v.MatchingType}
		var err error
		t.Data, err = hex.DecodeString(v.Certificate)
		rec.TLSA, ok = t, err == nil && len(t.Data) > 0
	}
	return rec, ok
}

// unescape undoes the presentation form (RFC 1035 section 5.1) in which the
// library keeps texts: \DDD and \X.
func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for ; i >= 0; i = strings.IndexByte(s, '\\') {
		out = append(out, s[:i]...)
		s = s[i+1:]
		switch {
		case len(s) >= 3 && isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2]):
			out = append(out, (s[0]-'0')*100+(s[1]-'0')*10+(s[2]-'0'))
			s = s[3:]
		case len(s) > 0:
			out = append(out, s[0])
			s = s[1:]
		}
	}
	return string(append(out, s...))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// authority finds the SOA of a negative answer, and says whether there are NS
// records, as in a referral.
func authority(m *wire.Msg) (soa *wire.SOA, referral bool) {
	for _, rr := range m.Ns {
		switch v := rr.(type) {
		case *wire.SOA:
			if soa == nil {
				soa = v
			}
		case *wire.NS:
			referral = true
		}
	}
	return soa, referral
}

// edeBogus says whether the server tells that validation failed (RFC 8914
// sections 4.2 and 4.6 to 4.13).
func edeBogus(m *wire.Msg) bool {
	opt := m.IsEdns0()
	if opt == nil {
		return false
	}
	for _, o := range opt.Option {
		if e, ok := o.(*wire.EDNS0_EDE); ok && (e.InfoCode == wire.ExtendedErrorCodeDNSBogus ||
			e.InfoCode >= wire.ExtendedErrorCodeSignatureExpired && e.InfoCode <= wire.ExtendedErrorCodeNSECMissing) {
			return true
		}
	}
	return false
}

// fold is the canonical form of a name out of a message: lower case, no
// trailing dot. Escapes stay.
func fold(s string) string {
	if s == "." {
		return s
	}
	return strings.ToLower(strings.TrimSuffix(s, "."))
}
