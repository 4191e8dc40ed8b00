package dns

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	wire "github.com/miekg/dns"
)

var testLimits = limits{posMax: 24 * time.Hour, negMax: 3 * time.Hour}

func message(t testing.TB, name string, qtype Type, rrs ...string) *wire.Msg {
	m := new(wire.Msg)
	m.SetQuestion(name, uint16(qtype))
	m.Response = true
	for _, s := range rrs {
		m.Answer = append(m.Answer, mustRR(t, s))
	}
	return m
}

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		name  string
		qtype Type
		rrs   []string
		want  string // canonical name, or the failure
		n     int
	}{
		{"in any order", TypeA, []string{"b.test. 60 IN A 192.0.2.1", "a.test. 60 IN CNAME B.test."}, "b.test", 1},
		{"other classes are ignored", TypeA, []string{"a.test. 60 CH A 192.0.2.1"}, "no such record", 0},
		{"other types are ignored", TypeA, []string{"a.test. 60 IN TXT x"}, "no such record", 0},
		{"other names are ignored", TypeA, []string{"x.test. 60 IN A 192.0.2.1"}, "no such record", 0},
		{"several aliases", TypeA, []string{"a.test. 60 IN CNAME b.test.", "a.test. 60 IN CNAME c.test."}, "malformed answer", 0},
		{"an alias to itself", TypeA, []string{"a.test. 60 IN CNAME a.test."}, "too many aliases", 0},
		{"bad exchangers are left out", TypeMX, []string{`a.test. 60 IN MX 1 b\010ad.test.`, "a.test. 60 IN MX 2 ok.test."}, "a.test", 1},
		{"no good exchanger at all", TypeMX, []string{`a.test. 60 IN MX 1 a\032b.test.`}, "malformed answer", 0},
		{"bad PTR", TypePTR, []string{`a.test. 60 IN PTR a(b|c).test.`}, "malformed answer", 0},
	} {
		m := message(t, "a.test.", c.qtype, c.rrs...)
		if m.Rcode == 0 && strings.HasPrefix(c.want, "no such") {
			m.Ns = []wire.RR{mustRR(t, "test. 60 IN SOA ns. root. 1 2 3 4 5")}
		}
		p, err := extract(m, "a.test", c.qtype, testLimits)
		got := p.Name
		if err != nil {
			got = err.Kind.String()
		}
		if got != c.want || len(p.Records) != c.n {
			t.Errorf("%s: %s with %d records, want %s with %d", c.name, got, len(p.Records), c.want, c.n)
		}
	}
}

// TestNoData checks records of length 0, which are legal for no type served.
func TestNoData(t *testing.T) {
	for _, qtype := range []Type{TypeA, TypeAAAA, TypeMX, TypeTXT, TypePTR, TypeTLSA, TypeCNAME} {
		for _, rrtype := range []Type{qtype, TypeCNAME} {
			b := []byte{
				0, 7, 0x80, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 'a', 4, 't', 'e', 's', 't', 0, 0, byte(qtype), 0, 1,
				0xc0, 12, 0, byte(rrtype), 0, 1, 0, 0, 0, 60, 0, 0,
			}
			m, err := question{id: 7, name: "a.test.", qtype: qtype}.parse(b, false)
			if err != nil {
				continue // dropped, as well
			}
			if p, fail := extract(m, "a.test", qtype, testLimits); fail == nil || fail.Kind != Malformed {
				t.Errorf("%v for %v: %+v, %v", rrtype, qtype, p, fail)
			}
		}
	}
}

func TestParseChecks(t *testing.T) {
	q := question{id: 7, name: "MiXed.test.", qtype: TypeA}
	good := message(t, "MiXed.test.", TypeA, "mixed.test. 60 IN A 192.0.2.1")
	good.Id = 7
	for _, c := range []struct {
		name  string
		mixed bool
		edit  func(*wire.Msg)
		want  error
	}{
		{"good", true, func(*wire.Msg) {}, nil},
		{"other case", false, func(m *wire.Msg) { m.Question[0].Name = "mixed.test." }, nil},
		{"0x20: other case", true, func(m *wire.Msg) { m.Question[0].Name = "mixed.test." }, errNotOurs},
		{"id", false, func(m *wire.Msg) { m.Id = 8 }, errNotOurs},
		{"a query", false, func(m *wire.Msg) { m.Response = false }, errNotOurs},
		{"opcode", false, func(m *wire.Msg) { m.Opcode = wire.OpcodeNotify }, errNotOurs},
		{"type", false, func(m *wire.Msg) { m.Question[0].Qtype = wire.TypeMX }, errNotOurs},
		{"class", false, func(m *wire.Msg) { m.Question[0].Qclass = wire.ClassCHAOS }, errNotOurs},
		{"no question", false, func(m *wire.Msg) { m.Question = nil }, errNotOurs},
		{"two questions", false, func(m *wire.Msg) { m.Question = append(m.Question, m.Question[0]) }, errNotOurs},
		{"truncated", false, func(m *wire.Msg) { m.Truncated = true }, errTruncated},
	} {
		m := good.Copy()
		c.edit(m)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.parse(b, c.mixed); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	b, err := good.Pack()
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(b) { // every way to cut it
		if _, err := q.parse(b[:n], false); !errors.Is(err, errNotOurs) {
			// A message cut between two records is whole to the library.
			if m, _ := q.parse(b[:n], false); m == nil || len(m.Answer) != 0 {
				t.Errorf("cut at %d: %v", n, err)
			}
		}
	}
	cut := bytes.Clone(b[:len(b)-1])
	cut[2] |= 2 // TC
	if _, err := q.parse(cut, false); !errors.Is(err, errTruncated) {
		t.Errorf("TC with half a record: %v", err)
	}
}

func TestMixedCase(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		q := newQuestion("abcdefghij.test", TypeA, true)
		if !strings.EqualFold(q.name, "abcdefghij.test.") {
			t.Fatalf("name %q", q.name)
		}
		seen[q.name] = true
	}
	if len(seen) < 10 {
		t.Errorf("%d spellings in 50 questions", len(seen))
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{
		`plain`: "plain", `a\"b`: `a"b`, `\\`: `\`, `\009x`: "\tx", `\255`: "\xff", `x\`: "x", `\1`: "1",
	} {
		if got := unescape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzAnswer feeds octets as the answer of a server, as they are and with the
// head of a right answer in front.
func FuzzAnswer(f *testing.F) {
	q := question{id: 7, name: "a.test.", qtype: TypeMX}
	for _, rrs := range [][]string{
		{"a.test. 60 IN MX 10 mx.test."},
		{"a.test. 60 IN CNAME b.test.", "b.test. 60 IN MX 10 mx.test."},
		{"a.test. 60 IN CNAME a.test."},
		{"a.test. 60 IN TXT \"x\" \"y\""},
		{"a.test. 60 IN TLSA 3 1 1 00"},
	} {
		m := message(f, "a.test.", TypeMX, rrs...)
		m.Id = 7
		b, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint16(TypeMX))
	}
	f.Fuzz(func(t *testing.T, b []byte, qtype uint16) {
		q.qtype = Type(qtype)
		framed := append([]byte{0, 7, 0x80, 0, 0, 1, 0, 9, 0, 3, 0, 0, 1, 'a', 4, 't', 'e', 's', 't', 0, byte(qtype >> 8), byte(qtype), 0, 1}, b...)
		for _, in := range [][]byte{b, framed} {
			m, err := q.parse(in, false)
			if err != nil {
				continue
			}
			p, fail := extract(m, "a.test", q.qtype, testLimits)
			checkPart(t, p, fail)
		}
	})
}

// checkPart holds what callers may rely on whatever the server says.
func checkPart(t *testing.T, p part, fail *Error) {
	t.Helper()
	if fail != nil {
		if fail.Kind == 0 || fail.TTL < 0 || fail.TTL > 3*time.Hour || fail.Error() == "" {
			t.Fatalf("failure %+v", fail)
		}
		return
	}
	if (len(p.Records) == 0) != (p.next != "") || p.TTL < 0 || p.TTL > 24*time.Hour || len(p.Aliases) > maxChain || len(p.Records) > maxRecords {
		t.Fatalf("answer %+v", p)
	}
	for _, r := range p.Records {
		if h := r.MX.Host; strings.ContainsAny(h, " \t\r\n\\()|?,:@!") || len(h) > maxName {
			t.Fatalf("host %q (D4)", h)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	m := message(b, "a.test.", TypeMX, "a.test. 60 IN CNAME b.test.", "b.test. 60 IN MX 10 mx1.test.", "b.test. 60 IN MX 20 mx2.test.")
	m.Id = 7
	packet, err := m.Pack()
	if err != nil {
		b.Fatal(err)
	}
	q := question{id: 7, name: "a.test.", qtype: TypeMX}
	b.ReportAllocs()
	for b.Loop() {
		m, err := q.parse(packet, false)
		if err != nil {
			b.Fatal(err)
		}
		if _, fail := extract(m, "a.test", TypeMX, testLimits); fail != nil {
			b.Fatal(fail)
		}
	}
}
