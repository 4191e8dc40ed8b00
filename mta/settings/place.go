package settings

import "strconv"

// Place is where a value was written. The zero Place is unknown.
type Place struct {
	// File is a file name, or the name of a chunk.
	File string
	// Line counts from 1; 0 is unknown.
	Line int
}

// String gives "file:line", "file", or "" for the zero Place.
func (p Place) String() string {
	switch {
	case p.File == "" && p.Line == 0:
		return ""
	case p.Line == 0:
		return p.File
	case p.File == "":
		return "line " + strconv.Itoa(p.Line)
	}
	return p.File + ":" + strconv.Itoa(p.Line)
}

// Node is a value of a tree together with its place. Any value in a tree may be wrapped in a *Node; a value without one
// has the place of what contains it.
//
// A tree is made of map[string]any, []any, string, bool, int64 (any Go integer is understood), float64, nil and *Node.
// Other Go values stand for themselves and fit fields of their own type.
type Node struct {
	Value any
	Place Place
}

// Plain returns v without its Nodes. What holds none is returned as it is.
func Plain(v any) any {
	switch v := v.(type) {
	case *Node:
		if v == nil {
			return nil
		}
		return Plain(v.Value)
	case map[string]any:
		return plainMap(v)
	case []any:
		return plainList(v)
	}
	return v
}

func plainMap(m map[string]any) any {
	if !holdsNode(m) {
		return m
	}
	out := make(map[string]any, len(m))
	for k, e := range m {
		out[k] = Plain(e)
	}
	return out
}

func plainList(l []any) any {
	if !holdsNode(l) {
		return l
	}
	out := make([]any, len(l))
	for i, e := range l {
		out[i] = Plain(e)
	}
	return out
}

func holdsNode(v any) bool {
	switch v := v.(type) {
	case *Node:
		return true
	case map[string]any:
		for _, e := range v {
			if holdsNode(e) {
				return true
			}
		}
	case []any:
		for _, e := range v {
			if holdsNode(e) {
				return true
			}
		}
	}
	return false
}
