package script

import (
	"reflect"
	"unsafe"

	lua "github.com/Shopify/go-lua"
)

// QUIRK: the VM forgets to unlink closed upvalues when a scope closes two or more, and searches that list for every
// upvalue of every new closure. A handler that makes a hundred closures of two variables took 6 ms after some hundred
// calls, and what they captured stayed alive. The list cannot be reached from outside, so it is pruned through its
// memory, after the layout was found to be the one known here; otherwise nothing is done.

// openUpvalue and upvalue mirror the types of the VM.
type openUpvalue struct {
	upvalue *upvalue
	next    *openUpvalue
}

type upvalue struct{ home any }

// upvalueList is the place of the list in a state.
type upvalueList struct{ offset uintptr }

// findUpvalueList checks the layout of the VM; nil when it is another one.
func findUpvalueList() *upvalueList {
	f, ok := reflect.TypeFor[lua.State]().FieldByName("upValues")
	if !ok || f.Type.Kind() != reflect.Pointer || !sameLayout(f.Type.Elem(), "upValue", "next") {
		return nil
	}
	up := f.Type.Elem().Field(0).Type
	if up.Kind() != reflect.Pointer || !sameLayout(up.Elem(), "home") || up.Elem().Field(0).Type != anyType {
		return nil
	}
	return &upvalueList{offset: f.Offset}
}

func sameLayout(t reflect.Type, fields ...string) bool {
	if t.Kind() != reflect.Struct || t.NumField() != len(fields) {
		return false
	}
	for i, name := range fields {
		if t.Field(i).Name != name {
			return false
		}
	}
	return true
}

func (u *upvalueList) head(l *lua.State) **openUpvalue {
	return (**openUpvalue)(unsafe.Add(unsafe.Pointer(l), u.offset))
}

// clear empties the list of a state in which no function runs.
func (u *upvalueList) clear(l *lua.State) {
	if u != nil {
		*u.head(l) = nil
	}
}

// prune unlinks what is closed from the list of a state in which functions run.
func (u *upvalueList) prune(l *lua.State) {
	if u == nil {
		return
	}
	for at := u.head(l); *at != nil; {
		if isOpen((*at).upvalue.home) {
			at = &(*at).next
		} else {
			*at = (*at).next
		}
	}
}

// isOpen reports whether the home of an upvalue is a place on the stack: values of closed ones are Lua values.
func isOpen(home any) bool {
	switch home.(type) {
	case nil, string, float64, bool:
		return false
	}
	t := reflect.TypeOf(home)
	return t.Kind() == reflect.Struct && t.Name() == "stackLocation"
}
