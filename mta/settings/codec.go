package settings

import (
	"encoding"
	"reflect"
	"sync"
	"time"
)

// codec reads the plain or Node-wrapped value v into dst, which can be set. The path of d stands at v.
type codec func(d *decoder, v any, dst reflect.Value)

// codecs caches codec by reflect.Type.
var codecs sync.Map

var (
	unmarshalerType     = reflect.TypeFor[Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	enumType            = reflect.TypeFor[Enum]()
	mergerType          = reflect.TypeFor[Merger]()
	durationType        = reflect.TypeFor[time.Duration]()
)

func codecOf(t reflect.Type) codec {
	if c, ok := codecs.Load(t); ok {
		return c.(codec)
	}
	c, _ := codecs.LoadOrStore(t, makeCodec(t))
	return c.(codec)
}

// isUnmarshaler says whether t reads itself from any value.
func isUnmarshaler(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshalerType) }

// isCustom says whether t reads itself.
func isCustom(t reflect.Type) bool {
	return isUnmarshaler(t) || reflect.PointerTo(t).Implements(textUnmarshalerType)
}

func makeCodec(t reflect.Type) codec {
	switch {
	case isUnmarshaler(t):
		return decodeUnmarshaler
	case reflect.PointerTo(t).Implements(textUnmarshalerType):
		return textCodec(t)
	case t == durationType:
		return decodeDuration
	}
	switch t.Kind() {
	case reflect.Bool:
		return decodeBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return decodeInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return decodeUint
	case reflect.Float32, reflect.Float64:
		return decodeFloat
	case reflect.String:
		if t.Implements(enumType) {
			return enumCodec(reflect.Zero(t).Interface().(Enum).Values())
		}
		return decodeString
	case reflect.Pointer:
		return decodePointer
	case reflect.Slice:
		return decodeList
	case reflect.Map:
		return decodeMap
	case reflect.Struct:
		return decodeStruct
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return decodeAny
		}
	}
	return decodeOther
}

// own takes a value that already has the type of the field.
func own(v any, dst reflect.Value) bool {
	if v == nil {
		return false
	}
	rv := reflect.ValueOf(v)
	if !rv.Type().AssignableTo(dst.Type()) {
		return false
	}
	dst.Set(rv)
	return true
}

func decodeUnmarshaler(d *decoder, v any, dst reflect.Value) {
	var place Place
	v = Plain(unwrap(v, &place))
	if own(v, dst) {
		return
	}
	if err := dst.Addr().Interface().(Unmarshaler).UnmarshalSetting(v); err != nil {
		d.refuse(err)
	}
}

func textCodec(t reflect.Type) codec {
	want := article(typeWord(t))
	return func(d *decoder, v any, dst reflect.Value) {
		var place Place
		v = unwrap(v, &place)
		s, ok := v.(string)
		switch {
		case ok:
			if err := dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
				d.refuse(err)
			}
		case !own(v, dst):
			d.expected(want, v)
		}
	}
}

func decodePointer(d *decoder, v any, dst reflect.Value) {
	var place Place
	plain := unwrap(v, &place)
	if plain == nil {
		dst.SetZero()
		return
	}
	if own(plain, dst) {
		return
	}
	elem := reflect.New(dst.Type().Elem())
	if !dst.IsNil() && d.overlay {
		elem.Elem().Set(dst.Elem())
		codecOf(elem.Elem().Type())(d, v, elem.Elem())
	} else {
		startValue(elem.Elem())
		d.fresh(v, elem.Elem())
	}
	dst.Set(elem)
}

// fresh reads v into dst, which holds its defaults: below it nothing is overlaid.
func (d *decoder) fresh(v any, dst reflect.Value) {
	saved := d.overlay
	d.overlay = false
	codecOf(dst.Type())(d, v, dst)
	d.overlay = saved
}

// decodeAny keeps the plain value.
func decodeAny(d *decoder, v any, dst reflect.Value) {
	v = Plain(v)
	if v == nil {
		dst.SetZero()
		return
	}
	dst.Set(reflect.ValueOf(v))
}

// decodeOther takes Go values only: functions and objects that a script hands over.
func decodeOther(d *decoder, v any, dst reflect.Value) {
	v = Plain(v)
	switch {
	case v == nil:
		dst.SetZero()
	case !own(v, dst):
		d.expected(article(typeWord(dst.Type())), v)
	}
}
