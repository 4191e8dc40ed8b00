package script

import (
	"reflect"
	"strings"
)

// Module is a set of functions, types and values that policies reach with require. It is plain data: registering one
// means passing it in [Config.Modules]. The zero value of each list is empty.
type Module struct {
	// Name is the name given to require, such as "svc.geo". Under the prefix, "svc.geo" is also the field geo of "svc".
	Name string
	// Doc says in one sentence what the module is for.
	Doc string
	// Funcs are the functions of the module table.
	Funcs []Func
	// Types are the object types that functions of any module may take and return.
	Types []TypeDecl
	// Values are the constants of the module table.
	Values []Value
	// Missing says why there is no function of a name that the module does not declare, such as "svc.x is not served
	// yet"; nil leaves it to the default, which names the nearest declared one. Reading such a name gives nil, so that a
	// policy can ask "if svc.x then"; what is raised when the nil is called or indexed on the line that read it ends
	// with this text and has it as its cause. Missing runs when there is such an error only.
	Missing func(name string) error
	// Absent, when not nil, declares nothing but a module that is known and not served: require raises it, unless the
	// policy has a Lua file of that name. A module that is declared as well wins.
	Absent error
}

// Value is a constant of a module, converted like a result of a function.
type Value struct {
	Name, Doc string
	Value     any
}

// Func is a declared function: made with [Fn] or [Get].
type Func struct {
	// Name is the name in the module table, or the name of the method.
	Name string
	// Doc says in one sentence what it does.
	Doc string

	fn    any
	args  []string
	field bool
}

// Fn declares a plain Go function as a function of a module or, when its first parameter is the type, as a method.
//
// An optional first context.Context is the one of the event that is handled. The other parameters take: string,
// []byte, bool, integers, floats, [time.Duration] and settings.Duration (seconds or text such as "5m"), any,
// map[string]any, []any, lists and maps of these, declared types and pointers to them, [Callback], types with
// UnmarshalText or UnmarshalSetting, and structs with set tags, which are decoded from a table with settings.Decode
// under the name of the function. Pointers to plain values are optional parameters, nil when not given. The last
// parameter may be variadic.
//
// Results are converted back; the last one may be an error, which becomes a Lua error at the line of the caller.
// [Values] returns as many values as it holds, a function becomes a Lua function.
//
// argNames name the parameters, without the context and without the receiver of a method, for errors and documents. A
// name that ends with "?" marks an optional parameter: left out or nil, it is the zero value of its Go type, or the
// defaults of a settings struct.
//
// A method whose name begins with two underscores is a hook of the object: __index(self, key), __newindex(self, key,
// value), __tostring(self), __pairs(self) returning a table, __eq, __call, __len, and other names of Lua 5.2 metamethods.
// The hook __setting(self) gives the plain form of the object, such as a table: it is what Go types with
// UnmarshalSetting read when a policy hands over the object in their place.
//
// A function that cannot be bound is reported by [New].
func Fn(name, doc string, fn any, argNames ...string) Func {
	return Func{Name: name, Doc: doc, fn: fn, args: argNames}
}

// Get declares a read-only field of an object: fn takes the receiver and returns the value.
func Get(name, doc string, fn any) Func {
	return Func{Name: name, Doc: doc, fn: fn, field: true}
}

// Values are several results of a function whose number is known only at run time.
type Values []any

// TypeDecl is a declared object type: made with [Type].
type TypeDecl struct {
	// Name is the name in error texts and documents, such as "message".
	Name string
	// Doc says in one sentence what the object is.
	Doc string
	// Methods are the functions called on the object, the fields read from it, and its hooks.
	Methods []Func
	// Scoped objects are valid only until the call that handed them out returns. A policy that keeps one in a global
	// gets an error when it uses it later. Messages and sessions are always scoped.
	Scoped bool

	typ reflect.Type
}

// Type declares a Go type as an object of policies. T and *T are the same type: pass the type without the star. Objects
// of a declared type are equal when their pointers, or their comparable values, are equal; tostring gives what String
// gives, when the type has it.
func Type[T any](name, doc string, methods ...Func) TypeDecl {
	t := reflect.TypeFor[T]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return TypeDecl{Name: name, Doc: doc, Methods: methods, typ: t}
}

// GoType is the declared type, without pointers.
func (t TypeDecl) GoType() reflect.Type { return t.typ }

// argName returns the name of parameter i and whether it is marked as optional.
func (f *Func) argName(i int) (name string, optional bool) {
	if i >= len(f.args) {
		return "", false
	}
	return strings.CutSuffix(f.args[i], "?")
}
