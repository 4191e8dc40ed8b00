package settings

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxFaults is how many faults one decode keeps; the rest is counted.
const MaxFaults = 100

// maxKnown is how many known names an error lists.
const maxKnown = 32

type faultKind uint8

const (
	faultValue faultKind = iota
	faultUnknown
	faultRefused
	faultRequired
	faultMore // stands for faults beyond MaxFaults
)

// Error is one fault in given settings.
type Error struct {
	// What was being read, for example "make_queue_config".
	What string
	// Path leads to the setting: "trigger.Threshold", "entries[1].name" (lists count from 1), `peer["10.0.0.0/8"].hostname`.
	// Empty means the whole.
	Path string
	// Place is where the setting was written, if known.
	Place Place
	// Msg says what is wrong.
	Msg string
	// Suggestion is the nearest known name or value, if one is near.
	Suggestion string

	kind  faultKind
	known []string
	cause error
}

// Fault makes an error about the setting at path, for use in Validate methods and UnmarshalSetting.
// The decoder adds what, place and the path to the struct.
func Fault(path, format string, args ...any) error {
	return &Error{Path: path, Msg: fmt.Sprintf(format, args...)}
}

// Expected makes the error for a value of the wrong type; want carries its article: "a duration".
func Expected(want string, got any) error {
	return &Error{Msg: "expected " + want + ", got " + describeValue(got)}
}

// Unknown says whether the fault is a name that is no setting.
func (e *Error) Unknown() bool { return e.kind == faultUnknown }

// Unwrap gives the error of the type or validator that refused the value, or nil.
func (e *Error) Unwrap() error { return e.cause }

// Error gives "file:line: what: setting "x": message".
func (e *Error) Error() string { return e.prefix("") + e.text() }

func (e *Error) prefix(lastWhat string) string {
	p := e.Place.String()
	if p != "" {
		p += ": "
	}
	if e.What != "" && e.What != lastWhat && e.What != e.Place.File {
		p += e.What + ": "
	}
	return p
}

func (e *Error) text() string {
	path := strconv.Quote(e.Path)
	switch e.kind {
	case faultUnknown:
		if e.Suggestion != "" {
			return "unknown setting " + path + ", did you mean " + strconv.Quote(e.Suggestion) + "?"
		}
		return "unknown setting " + path + knownText(e.known)
	case faultRefused:
		return "setting " + path + " is not served yet: " + e.Msg
	case faultRequired:
		return "setting " + path + " is required"
	case faultMore:
		return e.Msg
	}
	msg := e.Msg
	if e.Suggestion != "" {
		msg += ", did you mean " + strconv.Quote(e.Suggestion) + "?"
	}
	if e.Path == "" {
		return msg
	}
	return "setting " + path + ": " + msg
}

func knownText(known []string) string {
	if len(known) == 0 {
		return " (none is known here)"
	}
	more := ""
	if len(known) > maxKnown {
		known, more = known[:maxKnown], ", ..."
	}
	return " (known: " + strings.Join(known, ", ") + more + ")"
}

// Errors is all faults of one decode, in the order of their places, then paths. It is never empty when returned.
type Errors []*Error

// Error gives one line per fault; what was read is said once.
func (es Errors) Error() string {
	var b strings.Builder
	last := ""
	for i, e := range es {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(e.prefix(last))
		b.WriteString(e.text())
		last = e.What
	}
	return b.String()
}

// Unwrap lets errors.Is and errors.As look at each fault.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

func (es Errors) sort() {
	slices.SortStableFunc(es, func(a, b *Error) int {
		switch {
		case (a.kind == faultMore) != (b.kind == faultMore):
			if a.kind == faultMore {
				return 1
			}
			return -1
		case a.Place.File != b.Place.File:
			return strings.Compare(a.Place.File, b.Place.File)
		case a.Place.Line != b.Place.Line:
			return a.Place.Line - b.Place.Line
		}
		return strings.Compare(a.Path, b.Path)
	})
}

// faultsIn lists the faults err is made of: an error that is none of ours becomes one about the whole.
func faultsIn(err error) []*Error {
	var es Errors
	if errors.As(err, &es) {
		return es
	}
	if e, ok := err.(*Error); ok {
		return []*Error{e}
	}
	return []*Error{{Msg: err.Error(), cause: err}}
}

// joinPath puts prefix before path.
func joinPath(prefix, path string) string {
	switch {
	case prefix == "":
		return path
	case path == "":
		return prefix
	case path[0] == '[':
		return prefix + path
	}
	return prefix + "." + path
}
