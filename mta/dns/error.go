package dns

import (
	"context"
	"errors"
	"time"
)

// Kind says why a lookup failed.
type Kind uint8

// The kinds of failure. The zero Kind is not used.
const (
	_         Kind = iota
	NXDomain       // the name does not exist
	NoData         // the name exists, without records of this type
	ServFail       // the server could not find out
	Timeout        // no answer in time
	Refused        // the server does not want to
	Malformed      // the answer makes no sense
	Bogus          // the answer failed DNSSEC validation
	Loop           // the aliases form a circle, or a chain that is too long
	BadName        // the name asked for is not a domain name; nothing was sent
	Network        // the question could not be sent, or the connection broke
	Canceled       // the caller, or Close, ended the lookup
)

var kindText = [...]string{
	NXDomain:  "no such domain",
	NoData:    "no such record",
	ServFail:  "server failure",
	Timeout:   "timeout",
	Refused:   "refused by server",
	Malformed: "malformed answer",
	Bogus:     "DNSSEC validation failed",
	Loop:      "too many aliases",
	BadName:   "not a domain name",
	Network:   "network failure",
	Canceled:  "lookup cancelled",
}

// String returns the reason in words.
func (k Kind) String() string {
	if int(k) < len(kindText) && kindText[k] != "" {
		return kindText[k]
	}
	return "unknown failure"
}

// Error is the failure of a lookup. It is immutable and may be shared.
type Error struct {
	// Name is the name asked for.
	Name string
	// Type is the record type asked for.
	Type Type
	// Kind is the reason.
	Kind Kind
	// TTL is how long the failure may be remembered (RFC 2308 section 5); 0 is not at all.
	TTL time.Duration
	// Secure says that the absence was proven by DNSSEC.
	Secure bool
	// Err is the cause, nil if the Kind says all.
	Err error
}

var (
	errNoServers = errors.New("no resolver to ask")
	errClosed    = errors.New("resolver is closed")
)

// Error returns type, name, reason and cause.
func (e *Error) Error() string {
	s := "dns: " + e.Type.String() + " " + e.Name + ": " + e.Kind.String()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NotFound says that the answer was a clear no.
func (e *Error) NotFound() bool { return e.Kind == NXDomain || e.Kind == NoData }

// Temporary says that asking again later may help.
func (e *Error) Temporary() bool { return !e.NotFound() && e.Kind != BadName }

// Timeout says that time ran out.
func (e *Error) Timeout() bool { return e.Kind == Timeout }

// IsNotFound says whether err tells that the name or the record does not exist.
// It is false for nil and for failures that say nothing about existence.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.NotFound()
}

// IsNXDomain says whether err tells that the name does not exist at all.
func IsNXDomain(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == NXDomain
}

// weight orders failures by how little they say about existence.
func weight(err error) int {
	switch {
	case IsNXDomain(err):
		return 0
	case IsNotFound(err):
		return 1
	}
	return 2
}

// contextError makes the end of a context an *Error.
func contextError(name string, qtype Type, err error) *Error {
	k := Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		k = Timeout
	}
	return &Error{Name: name, Type: qtype, Kind: k, Err: err}
}
