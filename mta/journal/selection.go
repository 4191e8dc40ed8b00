package journal

import (
	"strings"

	"example.com/svc/mta"
	"example.com/svc/mta/mail"
)

// patterns are names of which some end in "*" (logs.md 4.1 and 4.2).
type patterns struct {
	exact    []string
	prefixes []string
	fold     bool // compare without regard to ASCII case
}

func newPatterns(names []string, fold bool) patterns {
	p := patterns{fold: fold}
	for _, n := range names {
		if prefix, ok := strings.CutSuffix(n, "*"); ok {
			p.prefixes = append(p.prefixes, prefix)
		} else {
			p.exact = append(p.exact, n)
		}
	}
	return p
}

func (p *patterns) empty() bool { return len(p.exact) == 0 && len(p.prefixes) == 0 }

func (p *patterns) match(name string) bool {
	for _, e := range p.exact {
		if name == e || p.fold && strings.EqualFold(name, e) {
			return true
		}
	}
	for _, e := range p.prefixes {
		if len(name) < len(e) {
			continue
		}
		if head := name[:len(e)]; head == e || p.fold && strings.EqualFold(head, e) {
			return true
		}
	}
	return false
}

// appendMeta writes the object of the chosen metadata. Null values are left out (logs.md 4.1).
func appendMeta(b []byte, meta *mta.Meta, want *patterns) []byte {
	b = append(b, '{')
	if meta == nil || want.empty() {
		return append(b, '}')
	}
	first := true
	for key, v := range meta.All() {
		if v == nil || !want.match(key) {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, key), ':')
		b = appendValue(b, v, 0)
	}
	return append(b, '}')
}

// namedHeader collects the values of the fields of one name.
type namedHeader struct {
	name   string // as first spelled
	values []string
}

// appendHeaders writes the object of the chosen headers: a string for one occurrence, an array for several, under the
// spelling of the first one (logs.md 4.2).
func appendHeaders(b, data []byte, want *patterns) []byte {
	var found []namedHeader
	for f := range mail.Parse(data).All() {
		name := f.Name()
		if want.match(name) {
			found = addHeader(found, name, f.Value())
		}
	}
	b = append(b, '{')
	for i := range found {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, found[i].name), ':')
		if len(found[i].values) == 1 {
			b = appendString(b, found[i].values[0])
		} else {
			b = appendStrings(b, found[i].values)
		}
	}
	return append(b, '}')
}

func addHeader(found []namedHeader, name, value string) []namedHeader {
	for i := range found {
		if strings.EqualFold(found[i].name, name) {
			found[i].values = append(found[i].values, value)
			return found
		}
	}
	return append(found, namedHeader{name: name, values: []string{value}})
}
