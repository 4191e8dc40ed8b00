package script

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"

	"example.com/svc/mta/settings"
)

// fillDeclared takes objects of a declared type, as T or *T. Types with a text form take text as well.
func (c *compiler) fillDeclared(cv *conv, t reflect.Type) {
	ti := c.types.find(t)
	cv.want = ti.name
	asPtr := t.Kind() == reflect.Pointer
	textual := ti.ptr.Implements(textReaderType)
	cv.get = func(vm *vm, idx int) (reflect.Value, error) {
		r := vm.refAt(idx)
		if r == nil || r.typ != ti {
			if textual {
				if s, ok := vm.stringAt(idx); ok {
					return fromText(ti, s, asPtr)
				}
			}
			return reflect.Value{}, mismatch(vm, ti.name, idx)
		}
		if r.v == nil {
			return reflect.Value{}, stale(ti)
		}
		v := reflect.ValueOf(r.v)
		switch isPtr := v.Kind() == reflect.Pointer; {
		case isPtr == asPtr:
			return v, nil
		case asPtr:
			p := reflect.New(ti.base)
			p.Elem().Set(v)
			r.v = p.Interface() // later calls see what this one changes
			return p, nil
		}
		return v.Elem(), nil
	}
}

func fromText(ti *typeInfo, s string, asPtr bool) (reflect.Value, error) {
	p := reflect.New(ti.base)
	if err := p.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
		return reflect.Value{}, err
	}
	if asPtr {
		return p, nil
	}
	return p.Elem(), nil
}

// isSettings reports whether t is a struct with settings.
func isSettings(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if _, ok := f.Tag.Lookup("set"); ok {
			return true
		}
		if f.Anonymous && isSettings(f.Type) {
			return true
		}
	}
	return false
}

// fillSettings takes a table, decoded over the defaults, or a settings object made before.
func (c *compiler) fillSettings(cv *conv, t reflect.Type, what string) {
	base, asPtr := t, t.Kind() == reflect.Pointer
	if asPtr {
		base = t.Elem()
	}
	ti := c.types.setting(base)
	cv.want = "table"
	wrap := func(p reflect.Value) reflect.Value {
		if asPtr {
			return p
		}
		return p.Elem()
	}
	if !asPtr {
		cv.absent = func() (reflect.Value, error) {
			p := reflect.New(base)
			settings.SetDefaults(p.Interface())
			return p.Elem(), nil
		}
	}
	cv.get = func(vm *vm, idx int) (reflect.Value, error) {
		if r := vm.refAt(idx); r != nil && r.typ == ti {
			v := reflect.ValueOf(r.v)
			if asPtr == (v.Kind() == reflect.Pointer) {
				return v, nil
			}
			if asPtr {
				p := reflect.New(base)
				p.Elem().Set(v)
				return p, nil
			}
			return v.Elem(), nil
		}
		if !vm.l.IsTable(idx) {
			return reflect.Value{}, mismatch(vm, "table", idx)
		}
		tree, err := vm.toAny(idx)
		if err != nil {
			return reflect.Value{}, err
		}
		p := reflect.New(base)
		if err := settings.Decode(what, tree, p.Interface()); err != nil {
			return reflect.Value{}, whole{err}
		}
		return wrap(p), nil
	}
}

// fillPointer takes nil or a value: an optional parameter.
func (c *compiler) fillPointer(cv *conv, t reflect.Type, what string) error {
	inner, err := c.conv(t.Elem(), what)
	if err != nil {
		return err
	}
	cv.want, cv.optional = inner.want, true
	cv.get = func(vm *vm, idx int) (reflect.Value, error) {
		if vm.l.IsNoneOrNil(idx) {
			return reflect.Zero(t), nil
		}
		v, err := inner.get(vm, idx)
		if err != nil {
			return reflect.Value{}, err
		}
		p := reflect.New(t.Elem())
		p.Elem().Set(v)
		return p, nil
	}
	cv.takesNil = true
	return nil
}

// fillSlice takes a table with elements 1 to n.
func (c *compiler) fillSlice(cv *conv, t reflect.Type, what string) error {
	elem, err := c.conv(t.Elem(), what)
	if err != nil {
		return err
	}
	cv.want = "list<" + elem.want + ">"
	cv.get = func(vm *vm, idx int) (reflect.Value, error) {
		l := vm.l
		if !l.IsTable(idx) {
			return reflect.Value{}, mismatch(vm, "list", idx)
		}
		leave, err := vm.enter(idx)
		if err != nil {
			return reflect.Value{}, err
		}
		defer leave()
		idx = l.AbsIndex(idx)
		n := l.RawLength(idx)
		if err := vm.count(n); err != nil {
			return reflect.Value{}, err
		}
		if n == 0 && vm.hasKeys(idx) {
			return reflect.Value{}, errors.New("list expected, got a table with names")
		}
		vm.room(2)
		out := reflect.MakeSlice(t, n, n)
		for i := range n {
			l.RawGetInt(idx, i+1)
			v, err := elem.get(vm, l.Top())
			l.Pop(1)
			if err != nil {
				return reflect.Value{}, fmt.Errorf("element %d: %w", i+1, err)
			}
			out.Index(i).Set(v)
		}
		return out, nil
	}
	return nil
}

// hasKeys reports whether the table at idx has any entry.
func (vm *vm) hasKeys(idx int) bool {
	vm.room(2)
	vm.l.PushNil()
	if vm.l.Next(idx) {
		vm.l.Pop(2)
		return true
	}
	return false
}

// fillMap takes a table whose keys are strings.
func (c *compiler) fillMap(cv *conv, t reflect.Type, what string) error {
	elem, err := c.conv(t.Elem(), what)
	if err != nil {
		return err
	}
	cv.want = "map<string," + elem.want + ">"
	cv.get = func(vm *vm, idx int) (reflect.Value, error) {
		l := vm.l
		if !l.IsTable(idx) {
			return reflect.Value{}, mismatch(vm, "table", idx)
		}
		leave, err := vm.enter(idx)
		if err != nil {
			return reflect.Value{}, err
		}
		defer leave()
		idx = l.AbsIndex(idx)
		vm.room(3)
		out := reflect.MakeMap(t)
		array, keys := vm.keysOf(idx)
		if array > 0 {
			return reflect.Value{}, errors.New("key is a number, want a string")
		}
		for _, k := range keys {
			if err := vm.count(1); err != nil {
				return reflect.Value{}, err
			}
			vm.pushKey(k)
			key, ok := vm.stringAt(-1)
			if !ok {
				return reflect.Value{}, fmt.Errorf("key is a %s, want a string", vm.typeName(-1))
			}
			l.RawGet(idx)
			v, err := elem.get(vm, l.Top())
			l.Pop(1)
			if err != nil {
				return reflect.Value{}, fmt.Errorf("key %q: %w", clip(key), err)
			}
			out.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), v)
		}
		return out, nil
	}
	return nil
}
