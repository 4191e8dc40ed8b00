package settings

import (
	"fmt"
	"reflect"
)

// Decode sets the struct behind the pointer dst to its defaults, applies the keys of tree, and validates.
// what names the reader in errors ("make_queue_config"). The error is [Errors], or plain when dst is declared wrongly.
// On error dst is unchanged (C1). dst may also point to a map, a list or any other field type.
func Decode(what string, tree any, dst any) error {
	_, err := decode(what, tree, dst, false, false)
	return err
}

// Overlay is [Decode] on top of what dst holds: only the keys given change. Lists and maps are replaced, tables are
// overlaid in turn; the entries of a [Merger] are kept. Required settings need not be given again.
func Overlay(what string, tree any, dst any) error {
	_, err := decode(what, tree, dst, true, false)
	return err
}

// DecodeLenient is [Decode] for readers that tolerate unknown keys at any level: they are returned for the log.
func DecodeLenient(what string, tree any, dst any) (unknown Errors, err error) {
	return decode(what, tree, dst, false, true)
}

// OverlayLenient is [Overlay] with the tolerance of [DecodeLenient].
func OverlayLenient(what string, tree any, dst any) (unknown Errors, err error) {
	return decode(what, tree, dst, true, true)
}

// DecodeJSON is [ParseJSON] and [Decode]; every fault carries what, used as the file name, and its line.
func DecodeJSON(what string, data []byte, dst any) error {
	tree, err := ParseJSON(what, data)
	if err != nil {
		return err
	}
	return Decode(what, tree, dst)
}

// DecodeTOML is [ParseTOML] and [Decode]; every fault carries what, used as the file name, and its line.
func DecodeTOML(what string, data []byte, dst any) error {
	tree, err := ParseTOML(what, data)
	if err != nil {
		return err
	}
	return Decode(what, tree, dst)
}

func decode(what string, tree, dst any, overlay, lenient bool) (Errors, error) {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return nil, fmt.Errorf("settings: %s: want a pointer to decode into, got %T", what, dst)
	}
	v = v.Elem()
	if v.Kind() == reflect.Struct && !isCustom(v.Type()) {
		if p := planOf(v.Type()); p.err != nil {
			return nil, p.err
		}
	}
	d := newDecoder(what)
	defer d.free()
	d.overlay, d.lenient = overlay, lenient
	work := reflect.New(v.Type()).Elem()
	if overlay {
		work.Set(v)
	} else {
		startValue(work)
	}
	codecOf(v.Type())(d, tree, work)
	if err := d.result(); err != nil {
		return d.unknownKeys(), err
	}
	v.Set(work)
	return d.unknownKeys(), nil
}
