package script

import (
	"reflect"
	"strings"

	"example.com/svc/mta/settings"
)

// Doc is the generated documentation of one declaration.
type Doc struct {
	// Name is the full name: "svc.geo.country", "message:set_meta", "address.user".
	Name string
	// Kind is "function", "method", "field", "type" or "value".
	Kind string
	// Signature is "name(arg: type, arg?: type) -> type".
	Signature string
	// Text is the doc sentence.
	Text string
}

// Describe lists what the module declares, in order of declaration: functions, values, then each type with its members.
func (m Module) Describe() []Doc {
	names := typeNames(m.Types)
	var docs []Doc
	for i := range m.Funcs {
		f := &m.Funcs[i]
		docs = append(docs, Doc{m.Name + "." + f.Name, "function", f.signature(m.Name+"."+f.Name, names, false), f.Doc})
	}
	for _, v := range m.Values {
		name := m.Name + "." + v.Name
		word := "nil"
		if v.Value != nil {
			word = names.word(reflect.TypeOf(v.Value))
		}
		docs = append(docs, Doc{name, "value", name + ": " + word, v.Doc})
	}
	for _, t := range m.Types {
		docs = append(docs, Doc{t.Name, "type", t.Name, t.Doc})
		for i := range t.Methods {
			docs = append(docs, t.Methods[i].describeMember(t.Name, names))
		}
	}
	return docs
}

func (f *Func) describeMember(owner string, names wordTable) Doc {
	if f.field {
		name := owner + "." + f.Name
		return Doc{name, "field", name + ": " + strings.TrimPrefix(f.resultText(names), " -> "), f.Doc}
	}
	name := owner + ":" + f.Name
	return Doc{name, "method", f.signature(name, names, true), f.Doc}
}

// Signature is "name(arg: type, arg?: type) -> type" of a function. Types are named by their Go names; use
// [Module.Describe] for the names policies know.
func (f Func) Signature() string { return f.signature(f.Name, nil, false) }

func (f *Func) signature(name string, names wordTable, method bool) string {
	t := reflect.TypeOf(f.fn)
	if t == nil || t.Kind() != reflect.Func {
		return name + "(?)"
	}
	first := 0
	if t.NumIn() > 0 && t.In(0) == contextType {
		first = 1
	}
	if method {
		first++
	}
	var args []string
	for i := first; i < t.NumIn(); i++ {
		args = append(args, f.argText(t, i, i-first, names))
	}
	return name + "(" + strings.Join(args, ", ") + ")" + f.resultText(names)
}

func (f *Func) argText(t reflect.Type, i, n int, names wordTable) string {
	at := t.In(i)
	name, opt := f.argName(n)
	if name == "" {
		name = "arg" + string(rune('1'+n%9))
	}
	if t.IsVariadic() && i == t.NumIn()-1 {
		return name + "...: " + names.word(at.Elem())
	}
	if at.Kind() == reflect.Pointer && names[at.Elem()] == "" && !isSettings(at.Elem()) && at != callbackType {
		opt = opt || at.Elem().Kind() != reflect.Struct
	}
	if opt {
		name += "?"
	}
	return name + ": " + names.word(at)
}

func (f *Func) resultText(names wordTable) string {
	t := reflect.TypeOf(f.fn)
	if t == nil || t.Kind() != reflect.Func {
		return ""
	}
	var words []string
	for i := range t.NumOut() {
		switch out := t.Out(i); {
		case out == errorType && i == t.NumOut()-1:
		case out == valuesType:
			words = append(words, "any...")
		default:
			words = append(words, names.word(out))
		}
	}
	switch len(words) {
	case 0:
		return ""
	case 1:
		return " -> " + words[0]
	}
	return " -> (" + strings.Join(words, ", ") + ")"
}

// wordTable names declared types.
type wordTable map[reflect.Type]string

func typeNames(ts []TypeDecl) wordTable {
	m := make(wordTable, len(ts))
	for _, t := range ts {
		m[t.typ] = t.Name
	}
	return m
}

// word names a type as the tables of the specification do.
func (w wordTable) word(t reflect.Type) string {
	base := t
	if t.Kind() == reflect.Pointer {
		base = t.Elem()
	}
	switch name := w[base]; {
	case name != "":
		return name
	case t == anyType:
		return "any"
	case t == callbackType || t == callbackValue:
		return "function"
	case t == bytesType:
		return "string"
	case isSettings(base):
		return "table"
	case base != t && base.Kind() != reflect.Struct:
		return w.word(base)
	}
	switch t.Kind() {
	case reflect.Slice:
		if t == listType {
			return "list"
		}
		return "list<" + w.word(t.Elem()) + ">"
	case reflect.Map:
		if t == mapType {
			return "table"
		}
		return "map<" + w.word(t.Key()) + ", " + w.word(t.Elem()) + ">"
	case reflect.Func:
		return "function"
	}
	return typeWord(t)
}

// typeWord names a plain type.
func typeWord(t reflect.Type) string {
	if t == durationType {
		return "duration"
	}
	for _, c := range []reflect.Type{t, reflect.PointerTo(t)} {
		if c.Implements(reflect.TypeFor[settings.Typer]()) && c.Kind() != reflect.Interface {
			v := reflect.New(t)
			if c == t {
				return v.Elem().Interface().(settings.Typer).SettingType()
			}
			return v.Interface().(settings.Typer).SettingType()
		}
	}
	switch k := t.Kind(); {
	case k == reflect.Bool:
		return "boolean"
	case k == reflect.String:
		return "string"
	case k >= reflect.Int && k <= reflect.Uint64:
		return "integer"
	case k == reflect.Float32 || k == reflect.Float64:
		return "number"
	case k == reflect.Map:
		return "table"
	}
	return lowerName(t)
}
