package settings

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// KV is one entry of a [Map].
type KV struct {
	Key   string
	Value any
}

// Map is an ordered table of plain values: string, bool, int64, uint64, float64, time.Time, Map and []any.
type Map []KV

// Get returns the value of key, nil when there is none.
func (m Map) Get(key string) any {
	for _, kv := range m {
		if kv.Key == key {
			return kv.Value
		}
	}
	return nil
}

// Tree gives m as a tree that [Decode] reads: tables as map[string]any.
func (m Map) Tree() map[string]any {
	out := make(map[string]any, len(m))
	for _, kv := range m {
		out[kv.Key] = treeOf(kv.Value)
	}
	return out
}

func treeOf(v any) any {
	switch v := v.(type) {
	case Map:
		return v.Tree()
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = treeOf(e)
		}
		return out
	}
	return v
}

// Encode gives a settings struct or a map (or a pointer to one) as an ordered table, in the order of declaration. Durations,
// rates and other syntaxes are printed in their text form. What is unset (nil pointers, lists, maps, functions) is left
// out. Secrets of a [KeySource] are masked.
func Encode(v any) Map {
	rv := reflect.ValueOf(v)
	for rv.Kind() == reflect.Pointer || rv.Kind() == reflect.Interface {
		if rv.IsNil() {
			return nil
		}
		rv = rv.Elem()
	}
	switch rv.Kind() {
	case reflect.Struct:
		return encodeStruct(rv, 0)
	case reflect.Map:
		return encodeMap(rv, 0)
	}
	return nil
}

func encodeStruct(v reflect.Value, depth int) Map {
	p := planOf(v.Type())
	out := make(Map, 0, len(p.fields))
	for i := range p.fields {
		f := &p.fields[i]
		if e := encodeValue(f.at(v), depth+1); e != nil {
			out = append(out, KV{f.key, e})
		}
	}
	return out
}

var (
	marshalerType     = reflect.TypeFor[Marshaler]()
	textMarshalerType = reflect.TypeFor[encoding.TextMarshaler]()
)

// as gives v as an I if its type or pointer type is one.
func as[I any](v reflect.Value, want reflect.Type) (i I, ok bool) {
	switch {
	case v.Type().Implements(want):
		i, ok = v.Interface().(I)
	case reflect.PointerTo(v.Type()).Implements(want):
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		i, ok = p.Interface().(I)
	}
	return i, ok
}

// encodeValue gives the plain value of v, or nil when it is unset.
func encodeValue(v reflect.Value, depth int) any {
	if depth > MaxDepth {
		return nil
	}
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	if !v.IsValid() || !v.CanInterface() {
		return nil
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		return v.Interface()
	}
	if m, ok := as[Marshaler](v, marshalerType); ok {
		return m.MarshalSetting()
	}
	if m, ok := as[encoding.TextMarshaler](v, textMarshalerType); ok {
		text, err := m.MarshalText()
		if err != nil || len(text) == 0 {
			return nil
		}
		return string(text)
	}
	if v.Type() == durationType {
		return FormatDuration(time.Duration(v.Int()))
	}
	return encodeKind(v, depth)
}

func encodeKind(v reflect.Value, depth int) any {
	switch {
	case v.Kind() == reflect.Bool:
		return v.Bool()
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		if u := v.Uint(); u > 1<<63-1 {
			return u
		}
		return int64(v.Uint())
	case v.CanFloat():
		return v.Float()
	case v.Kind() == reflect.Struct:
		return encodeStruct(v, depth)
	case v.Kind() == reflect.Slice && !v.IsNil():
		out := make([]any, 0, v.Len())
		for i := range v.Len() {
			out = append(out, encodeValue(v.Index(i), depth+1))
		}
		return out
	case v.Kind() == reflect.Map && !v.IsNil():
		return encodeMap(v, depth)
	}
	return nil
}

func encodeMap(v reflect.Value, depth int) Map {
	out := make(Map, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		if e := encodeValue(it.Value(), depth+1); e != nil {
			out = append(out, KV{keyText(it.Key()), e})
		}
	}
	slices.SortFunc(out, func(a, b KV) int { return strings.Compare(a.Key, b.Key) })
	return out
}

func keyText(k reflect.Value) string {
	if m, ok := as[encoding.TextMarshaler](k, textMarshalerType); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprint(k.Interface())
}

// ordered turns the tables of a plain tree into ordered ones.
func ordered(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(Map, 0, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if e := ordered(v[k]); e != nil {
				out = append(out, KV{k, e})
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = ordered(e)
		}
		return out
	}
	return v
}
