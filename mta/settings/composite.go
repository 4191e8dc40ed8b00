package settings

import (
	"encoding"
	"maps"
	"reflect"
	"slices"
)

// table gives the keys of a tree; an empty list is an empty table, since Lua cannot tell them apart.
func table(v any) (map[string]any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case []any:
		return nil, len(v) == 0
	}
	return nil, false
}

func decodeStruct(d *decoder, v any, dst reflect.Value) {
	p := planOf(dst.Type())
	if p.err != nil {
		d.refuse(p.err)
		return
	}
	v = d.enter("", 0, v)
	defer d.leave()
	if d.tooDeep() {
		return
	}
	m, ok := table(v)
	if !ok {
		if !own(v, dst) {
			d.expected("a table", v)
		}
		return
	}
	before := len(d.faults)
	for key, e := range m {
		i, ok := p.byKey[key]
		if !ok {
			d.unknownKey(p, key, e)
			continue
		}
		f := &p.fields[i]
		e = d.enter(key, 0, e)
		f.codec(d, e, f.at(dst))
		d.leave()
	}
	if !d.overlay {
		d.missing(p, m)
	}
	if len(d.faults) == before {
		d.validate(p, dst)
	}
}

// unknownKey reports a key that is no setting, or one not served yet.
func (d *decoder) unknownKey(p *plan, key string, v any) {
	d.enter(key, 0, v)
	defer d.leave()
	if reason, ok := p.refused[key]; ok {
		d.add(&Error{Msg: reason, kind: faultRefused})
		return
	}
	if p.lenient && !d.lenient {
		return
	}
	d.add(&Error{kind: faultUnknown, Suggestion: Nearest(key, p.known), known: p.known, Msg: "unknown setting"})
}

// missing reports required settings that were not given.
func (d *decoder) missing(p *plan, m map[string]any) {
	for _, i := range p.required {
		key := p.fields[i].key
		var place Place
		if unwrap(m[key], &place) == nil {
			d.enter(key, 0, nil)
			d.add(&Error{kind: faultRequired, Msg: "is required"})
			d.leave()
		}
	}
}

func (d *decoder) validate(p *plan, dst reflect.Value) {
	for _, index := range p.validators {
		at := dst
		for _, i := range index {
			at = at.Field(i)
		}
		if err := at.Addr().Interface().(Validator).Validate(); err != nil {
			d.refuse(err)
		}
	}
}

func decodeList(d *decoder, v any, dst reflect.Value) {
	v = d.enter("", 0, v)
	defer d.leave()
	if d.tooDeep() {
		return
	}
	var list []any
	switch v := v.(type) {
	case nil:
		dst.SetZero()
		return
	case []any:
		list = v
	case map[string]any:
		if len(v) > 0 {
			d.expected("a list", v)
			return
		}
	default:
		if !own(v, dst) {
			d.expected("a list", v)
		}
		return
	}
	out := reflect.MakeSlice(dst.Type(), len(list), len(list))
	for i, e := range list {
		startValue(out.Index(i))
		e = d.enter("", i+1, e)
		d.fresh(e, out.Index(i))
		d.leave()
	}
	dst.Set(out)
}

func decodeMap(d *decoder, v any, dst reflect.Value) {
	v = d.enter("", 0, v)
	defer d.leave()
	if d.tooDeep() {
		return
	}
	if v == nil {
		dst.SetZero()
		return
	}
	m, ok := table(v)
	if !ok {
		if !own(v, dst) {
			d.expected("a table", v)
		}
		return
	}
	t := dst.Type()
	out := reflect.MakeMapWithSize(t, len(m))
	merge := d.overlay && t.Implements(mergerType)
	if merge {
		for it := dst.MapRange(); it.Next(); {
			out.SetMapIndex(it.Key(), it.Value())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		e := d.enter(key, 0, m[key])
		d.entry(t, key, e, out, merge)
		d.leave()
	}
	dst.Set(out)
}

// entry reads one entry of a map. A nil value removes the entry of a merged map.
func (d *decoder) entry(t reflect.Type, key string, v any, out reflect.Value, merge bool) {
	k := reflect.New(t.Key()).Elem()
	if err := readKey(k, key); err != nil {
		d.refuse(err)
		return
	}
	old := out.MapIndex(k)
	if v == nil && merge {
		out.SetMapIndex(k, reflect.Value{})
		return
	}
	if old.IsValid() && !merge {
		d.faultf("means the same as another key")
		return
	}
	elem := reflect.New(t.Elem()).Elem()
	if old.IsValid() {
		elem.Set(old)
		codecOf(elem.Type())(d, v, elem)
	} else {
		startValue(elem)
		d.fresh(v, elem)
	}
	out.SetMapIndex(k, elem)
}

// readKey reads a map key: a string type, or one with UnmarshalText.
func readKey(dst reflect.Value, key string) error {
	if u, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(key))
	}
	if dst.Kind() != reflect.String {
		return Fault("", "keys of type %s cannot be given", dst.Type())
	}
	if e, ok := dst.Interface().(Enum); ok {
		if err := checkEnum(key, e.Values()); err != nil {
			return err
		}
	}
	dst.SetString(key)
	return nil
}
