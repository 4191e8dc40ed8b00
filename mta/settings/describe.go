package settings

import (
	"net/netip"
	"reflect"
	"strings"
	"time"
)

// Field describes one setting.
type Field struct {
	// Key is the name; settings of nested tables are in Fields.
	Key string
	// Type is the word of the settings table: duration, size, int, number, bool, string, enum, list<..>, map<..>, table.
	Type string
	// Values are the values of an enum.
	Values []string
	// Default is the text of the default tag; HasDefault tells an empty default from none.
	Default    string
	HasDefault bool
	// Required says that the setting must be given.
	Required bool
	// Optional says that the setting may be unset (a pointer).
	Optional bool
	// Refused is the reason why the setting is not served yet.
	Refused string
	// Name is the name of the Go field, empty for refused settings.
	Name string
	// Fields are the settings of a nested table, or of the elements of a list or map of tables.
	Fields []Field
}

// Describe lists the settings of a struct in the order of their declaration, refused ones last.
// v is a struct, a pointer to one, or a reflect.Type of either; anything else has no settings.
func Describe(v any) []Field {
	t, ok := v.(reflect.Type)
	if !ok {
		t = reflect.TypeOf(v)
	}
	return describe(t, 0)
}

func describe(t reflect.Type, depth int) []Field {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || isCustom(t) || depth > 4 {
		return nil
	}
	p := planOf(t)
	out := make([]Field, 0, len(p.known))
	for _, f := range p.fields {
		d := Field{
			Key: f.key, Type: typeWord(f.typ), Default: f.def, HasDefault: f.hasDef, Required: f.required,
			Optional: f.typ.Kind() == reflect.Pointer, Name: t.FieldByIndex(f.index).Name,
		}
		inner := f.typ
		for inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.String && inner.Implements(enumType) {
			d.Values = reflect.Zero(inner).Interface().(Enum).Values()
		}
		if !isCustom(inner) && (inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map) {
			inner = inner.Elem()
		}
		d.Fields = describe(inner, depth+1)
		out = append(out, d)
	}
	for _, key := range p.known {
		if reason, ok := p.refused[key]; ok {
			out = append(out, Field{Key: key, Refused: reason})
		}
	}
	return out
}

var typerType = reflect.TypeFor[Typer]()

// typeWord names the syntax of a type with the words of the settings table.
func typeWord(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeWord(t.Elem())
	case reflect.PointerTo(t).Implements(typerType):
		return reflect.New(t).Interface().(Typer).SettingType()
	}
	switch t {
	case durationType:
		return "duration"
	case reflect.TypeFor[time.Time]():
		return "rfc3339"
	case reflect.TypeFor[netip.Addr]():
		return "ip"
	case reflect.TypeFor[netip.AddrPort]():
		return "ip:port"
	case reflect.TypeFor[netip.Prefix]():
		return "cidr"
	}
	if isCustom(t) {
		return strings.ToLower(t.Name())
	}
	switch t.Kind() {
	case reflect.Bool:
		return "bool"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.String:
		if t.Implements(enumType) {
			return "enum"
		}
		return "string"
	case reflect.Slice:
		return "list<" + typeWord(t.Elem()) + ">"
	case reflect.Map:
		return "map<" + typeWord(t.Key()) + "," + typeWord(t.Elem()) + ">"
	case reflect.Struct:
		return "table"
	case reflect.Func:
		return "function"
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return "any"
		}
		return strings.ToLower(t.Name())
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64 {
		return "int"
	}
	return t.String()
}

// article puts "a" or "an" before a word.
func article(word string) string {
	if word != "" && strings.IndexByte("aeiou", word[0]) >= 0 {
		return "an " + word
	}
	return "a " + word
}
