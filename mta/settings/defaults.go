package settings

import (
	"fmt"
	"reflect"
	"strings"
)

// New returns a T with the defaults of its tags, then edited by each function in turn.
// It panics when the declaration of T is wrong (a default that its type refuses, a name used twice): a mistake of the
// program that its first use shows.
func New[T any](edit ...func(*T)) T {
	var v T
	SetDefaults(&v)
	for _, e := range edit {
		e(&v)
	}
	return v
}

// SetDefaults sets the struct behind the pointer dst to the defaults of its tags, as [New] does. It panics as New does,
// and when dst is not a pointer to a struct.
func SetDefaults(dst any) {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("settings: SetDefaults wants a pointer to a struct, got %T", dst))
	}
	p := planOf(v.Type().Elem())
	if p.err != nil {
		panic(p.err)
	}
	p.setDefaults(v.Elem())
}

// setDefaults sets v, a struct of the type of the plan. No memory of the kept default is shared (C2).
func (p *plan) setDefaults(v reflect.Value) {
	v.Set(p.defaults)
	for _, i := range p.deep {
		f := p.fields[i].at(v)
		f.Set(clone(f))
	}
}

// startValue sets what is about to be filled to its defaults.
func startValue(v reflect.Value) {
	if v.Kind() == reflect.Struct && !isCustom(v.Type()) {
		planOf(v.Type()).setDefaults(v)
	}
}

// makeDefaults reads the default tags into the kept default.
func (p *plan) makeDefaults() {
	v := reflect.New(p.typ).Elem()
	p.defaults = v
	for i := range p.fields {
		f := &p.fields[i]
		at := f.at(v)
		if at.Kind() == reflect.Struct && !isCustom(f.typ) {
			inner := planOf(f.typ)
			if inner.err != nil && p.err == nil {
				p.err = inner.err
			}
			inner.setDefaults(at)
		}
		if f.hasDef {
			if err := readDefault(f, at); err != nil && p.err == nil {
				p.err = fmt.Errorf("settings: default of %q in %s: %w", f.key, p.typ, err)
			}
		}
		if holdsMemory(at) {
			p.deep = append(p.deep, i)
		}
	}
}

// readDefault reads the text of a default tag: JSON for lists and tables, plain text otherwise.
func readDefault(f *field, at reflect.Value) error {
	tree, err := defaultTree(f.typ, f.def)
	if err != nil {
		return err
	}
	d := newDecoder("")
	defer d.free()
	f.codec(d, tree, at)
	return d.result()
}

// defaultTree turns the text of a default tag into what a source would give for it.
func defaultTree(t reflect.Type, text string) (any, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	structured := strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{")
	fromText := reflect.PointerTo(t).Implements(textUnmarshalerType)
	switch {
	case fromText && (!structured || !isUnmarshaler(t)): // a text may begin with a bracket: [::1]:25
		return text, nil
	case t == durationType, t.Kind() == reflect.String && !isCustom(t):
		return text, nil
	}
	tree, err := ParseJSON("default", []byte(text))
	if err != nil && (isUnmarshaler(t) || t.Kind() == reflect.Interface) {
		return text, nil
	}
	return Plain(tree), err
}

// holdsMemory says whether v leads to memory that a copy of v would share.
func holdsMemory(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return !v.IsNil()
	case reflect.Struct:
		if isCustom(v.Type()) {
			return false
		}
		for _, f := range planOf(v.Type()).fields {
			if holdsMemory(f.at(v)) {
				return true
			}
		}
	}
	return false
}

// clone copies v deeply through pointers, maps, slices and settings structs.
func clone(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(clone(v.Elem()))
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(clone(v.Index(i)))
		}
		return out
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			out.SetMapIndex(it.Key(), clone(it.Value()))
		}
		return out
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return clone(v.Elem())
	case reflect.Struct:
		if isCustom(v.Type()) {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for _, f := range planOf(v.Type()).fields {
			at := f.at(out)
			at.Set(clone(at))
		}
		return out
	}
	return v
}
