package settings

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Check validates a struct that was built in Go instead of decoded: every [Validator] and every [Enum] in it, nested
// ones included, is asked, and required strings, lists, maps and pointers must be set. v is a settings struct or a pointer to one.
// The error is [Errors], as from [Decode], or plain when v is declared wrongly.
func Check(what string, v any) error {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer && !rv.IsNil() {
		rv = rv.Elem()
	}
	if rv.Kind() != reflect.Struct {
		return Expected("a settings struct", v)
	}
	if p := planOf(rv.Type()); p.err != nil {
		return p.err
	}
	at := reflect.New(rv.Type()).Elem() // validators may have pointer receivers
	at.Set(rv)
	d := newDecoder(what)
	defer d.free()
	d.check(at)
	return d.result()
}

func (d *decoder) check(v reflect.Value) {
	if d.tooDeep() || isCustom(v.Type()) {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			d.check(v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			d.enter("", i+1, nil)
			d.check(v.Index(i))
			d.leave()
		}
	case reflect.Map:
		d.checkMap(v)
	case reflect.Struct:
		d.checkStruct(v)
	case reflect.String:
		if e, ok := v.Interface().(Enum); ok {
			if err := checkEnum(v.String(), e.Values()); err != nil {
				d.refuse(err)
			}
		}
	}
}

func (d *decoder) checkMap(v reflect.Value) {
	keys := map[string]reflect.Value{}
	for it := v.MapRange(); it.Next(); {
		keys[keyText(it.Key())] = it.Value()
	}
	for _, k := range slices.SortedFunc(maps.Keys(keys), strings.Compare) {
		elem := reflect.New(v.Type().Elem()).Elem()
		elem.Set(keys[k])
		d.enter(k, 0, nil)
		d.check(elem)
		d.leave()
	}
}

func (d *decoder) checkStruct(v reflect.Value) {
	p := planOf(v.Type())
	if p.err != nil {
		d.refuse(p.err)
		return
	}
	before := len(d.faults)
	for i := range p.fields {
		f := &p.fields[i]
		at := f.at(v)
		d.enter(f.key, 0, nil)
		switch {
		case f.required && canBeMissing(at):
			d.add(&Error{kind: faultRequired, Msg: "is required"})
		case !f.hasDef && at.Kind() == reflect.String && at.Len() == 0: // an enum without a default may be unset
		default:
			d.check(at)
		}
		d.leave()
	}
	if len(d.faults) == before {
		d.validate(p, v)
	}
}

// canBeMissing says whether v is the zero value of a kind whose zero value means nothing was given.
func canBeMissing(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Pointer, reflect.Interface, reflect.Func, reflect.Struct:
		return v.IsZero()
	}
	return false
}
