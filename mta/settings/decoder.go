package settings

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// MaxDepth is how deep trees and documents may nest.
const MaxDepth = 64

// decoder is the state of one decode: where it is, and what it found.
type decoder struct {
	what    string
	overlay bool
	lenient bool
	path    []step
	faults  Errors
	unknown Errors
	more    int
}

// step is one part of the path: a key, or an index counted from 1.
type step struct {
	key   string
	index int
	place Place
}

var decoders = sync.Pool{New: func() any { return &decoder{path: make([]step, 0, 8)} }}

func newDecoder(what string) *decoder {
	d := decoders.Get().(*decoder)
	d.what = what
	return d
}

func (d *decoder) free() {
	clear(d.path[:cap(d.path)])
	*d = decoder{path: d.path[:0]}
	decoders.Put(d)
}

// enter goes down to a value: it removes the Node around v and remembers its place.
func (d *decoder) enter(key string, index int, v any) any {
	s := step{key: key, index: index}
	if n := len(d.path); n > 0 {
		s.place = d.path[n-1].place
	}
	v = unwrap(v, &s.place)
	d.path = append(d.path, s)
	return v
}

func (d *decoder) leave() { d.path = d.path[:len(d.path)-1] }

// tooDeep reports a tree that nests further than is read.
func (d *decoder) tooDeep() bool {
	if len(d.path) <= 2*(MaxDepth+1) { // a key and its container are a step each
		return false
	}
	d.faultf("nested more than %d levels deep", MaxDepth)
	return true
}

func unwrap(v any, place *Place) any {
	for range MaxDepth {
		n, ok := v.(*Node)
		if !ok {
			return v
		}
		if n == nil {
			return nil
		}
		if n.Place != (Place{}) {
			*place = n.Place
		}
		v = n.Value
	}
	return nil
}

func (d *decoder) place() Place {
	if n := len(d.path); n > 0 {
		return d.path[n-1].place
	}
	return Place{}
}

func (d *decoder) pathText() string {
	var b strings.Builder
	for _, s := range d.path {
		switch {
		case s.index > 0:
			b.WriteByte('[')
			b.WriteString(strconv.Itoa(s.index))
			b.WriteByte(']')
		case s.key == "":
		case plainKey(s.key):
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		default:
			b.WriteByte('[')
			b.WriteString(strconv.Quote(clip(s.key)))
			b.WriteByte(']')
		}
	}
	return b.String()
}

// plainKey says whether a key reads well without quotes.
func plainKey(s string) bool {
	if len(s) > maxSuggestLen {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

func (d *decoder) add(e *Error) {
	e.What = d.what
	if e.Place == (Place{}) {
		e.Place = d.place()
	}
	e.Path = joinPath(d.pathText(), e.Path)
	if e.kind == faultUnknown && d.lenient {
		if len(d.unknown) < MaxFaults {
			d.unknown = append(d.unknown, e)
		}
		return
	}
	if len(d.faults) >= MaxFaults {
		d.more++
		return
	}
	d.faults = append(d.faults, e)
}

func (d *decoder) faultf(format string, args ...any) {
	d.add(&Error{Msg: fmt.Sprintf(format, args...)})
}

func (d *decoder) expected(want string, got any) {
	d.add(&Error{Msg: "expected " + want + ", got " + describeValue(got)})
}

// refuse reports the error of a field type or validator; faults it is made of are put below the current path.
func (d *decoder) refuse(err error) {
	for _, f := range faultsIn(err) {
		e := *f
		d.add(&e)
	}
}

func (d *decoder) result() error {
	if len(d.faults) == 0 {
		return nil
	}
	if d.more > 0 {
		d.faults = append(d.faults, &Error{What: d.what, Msg: fmt.Sprintf("and %d more faults", d.more), kind: faultMore})
	}
	d.faults.sort()
	return d.faults
}

func (d *decoder) unknownKeys() Errors {
	d.unknown.sort()
	return d.unknown
}
