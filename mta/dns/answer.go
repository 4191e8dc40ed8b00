package dns

import (
	"context"
	"net/netip"
	"strings"
	"time"
)

// Resolver answers questions about names. Implementations are safe for use by
// several goroutines. An answer has at least one record; a name or type that
// does not exist, and every failure, is an *Error.
type Resolver interface {
	Lookup(ctx context.Context, name string, qtype Type) (Answer, error)
}

// Answer is what a Resolver found. It may be shared with other callers: its
// slices must not be changed.
type Answer struct {
	// Name is the canonical name, at the end of the aliases: lower case, no trailing dot.
	Name string
	// Aliases are the names passed on the way, beginning with the one asked for.
	// Empty when there was no CNAME.
	Aliases []string
	// Records are of the type asked for, in the order received.
	Records []Record
	// TTL is how long the answer is valid from now; 0 means it must not be kept.
	TTL time.Duration
	// Secure says that the whole answer, aliases included, was validated by DNSSEC.
	Secure bool
}

// Record is the data of one resource record. Which field is set depends on the type.
type Record struct {
	// Addr is the address of A and AAAA.
	Addr netip.Addr
	// Host is the target of PTR and CNAME.
	Host string
	// MX is the exchanger.
	MX MX
	// TXT is the pieces of a text record.
	TXT []string
	// TLSA is the certificate association.
	TLSA *TLSA
}

// Text returns the pieces of a TXT record as one string (RFC 7208 section 3.3).
func (r Record) Text() string {
	if len(r.TXT) == 1 {
		return r.TXT[0]
	}
	return strings.Join(r.TXT, "")
}

// MX is one mail exchanger (RFC 1035 section 3.3.9).
type MX struct {
	// Pref orders exchangers; lower comes first.
	Pref uint16
	// Host is lower case without trailing dot; "." is the root of a null MX (RFC 7505).
	Host string
}

// TLSA is one certificate association (RFC 6698 section 2.1).
type TLSA struct {
	Usage, Selector, Matching uint8
	// Data is the association data, decoded from hexadecimal.
	Data []byte
}

// Func makes a function a Resolver. Lookup passes it the canonical name.
type Func func(ctx context.Context, name string, qtype Type) (Answer, error)

// Lookup calls f.
func (f Func) Lookup(ctx context.Context, name string, qtype Type) (Answer, error) {
	n, _, err := canonical(name, qtype)
	if err != nil {
		return Answer{}, err
	}
	return f(ctx, n, qtype)
}

// Aggregate asks each resolver in turn until one has records.
type Aggregate []Resolver

// Lookup returns the first answer with records. When there is none, a failure
// that may pass wins over "no such record", and that over "no such domain": a
// resolver in trouble, or one that does not know the name, does not make it
// disappear.
func (a Aggregate) Lookup(ctx context.Context, name string, qtype Type) (Answer, error) {
	var failed error
	for _, r := range a {
		ans, err := r.Lookup(ctx, name, qtype)
		if err == nil {
			return ans, nil
		}
		if failed == nil || weight(err) > weight(failed) {
			failed = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if failed == nil {
		failed = &Error{Name: name, Type: qtype, Kind: ServFail, Err: errNoServers}
	}
	return Answer{}, failed
}
