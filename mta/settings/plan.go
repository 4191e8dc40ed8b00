package settings

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
)

// plan is what is known about a struct type. It is made once per type and never changes.
type plan struct {
	typ      reflect.Type
	fields   []field
	byKey    map[string]int
	required []int
	refused  map[string]string
	known    []string // sorted names, refused ones included
	lenient  bool
	// validators lead to the structs to ask: the struct itself (nil index), or else its embedded structs.
	validators [][]int
	defaults   reflect.Value
	deep       []int // fields whose default holds memory that must not be shared
	err        error // a mistake in the declaration
}

// field is one setting of a plan.
type field struct {
	key      string
	index    []int
	typ      reflect.Type
	codec    codec
	def      string
	hasDef   bool
	required bool
}

// plans caches *plan by reflect.Type. Plans depend on the type alone, so sharing them between users is harmless.
var plans sync.Map

var (
	refuserType   = reflect.TypeFor[Refuser]()
	validatorType = reflect.TypeFor[Validator]()
	lenientType   = reflect.TypeFor[Lenient]()
)

// planOf returns the plan of a struct type.
func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	p, _ := plans.LoadOrStore(t, makePlan(t))
	return p.(*plan)
}

func makePlan(t reflect.Type) *plan {
	p := &plan{typ: t, byKey: map[string]int{}, refused: map[string]string{}}
	p.collect(t, nil)
	p.refusals(t)
	p.findValidators(t, nil)
	p.lenient = reflect.PointerTo(t).Implements(lenientType)
	p.known = slices.Concat(slices.Collect(maps.Keys(p.byKey)), slices.Collect(maps.Keys(p.refused)))
	slices.Sort(p.known)
	p.known = slices.Compact(p.known)
	p.makeDefaults()
	return p
}

func (p *plan) fail(f reflect.StructField, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("settings: field %s of %s: %s", f.Name, p.typ, fmt.Sprintf(format, args...))
	}
}

// collect adds the fields of t, found at index in the struct of the plan.
func (p *plan) collect(t reflect.Type, index []int) {
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(slices.Clone(index), i)
		key, tagged := f.Tag.Lookup("set")
		if !tagged {
			if f.Anonymous && f.Type.Kind() == reflect.Struct {
				p.collect(f.Type, at)
			}
			continue
		}
		def, hasDef := f.Tag.Lookup("default")
		_, taken := p.byKey[key]
		switch {
		case key == "":
			p.fail(f, "has no name")
			continue
		case !f.IsExported():
			p.fail(f, "is not exported")
			continue
		case taken:
			p.fail(f, "name %q is taken", key)
			continue
		}
		required := f.Tag.Get("required") == "true"
		if required && hasDef {
			p.fail(f, "is required and has a default")
		}
		if required {
			p.required = append(p.required, len(p.fields))
		}
		p.byKey[key] = len(p.fields)
		p.fields = append(p.fields, field{
			key: key, index: at, typ: f.Type, codec: codecOf(f.Type), def: def, hasDef: hasDef, required: required,
		})
	}
}

// refusals collects Refused of t, or else of the structs embedded in it.
func (p *plan) refusals(t reflect.Type) {
	if reflect.PointerTo(t).Implements(refuserType) {
		maps.Copy(p.refused, reflect.New(t).Interface().(Refuser).Refused())
		return
	}
	for f := range embedded(t) {
		p.refusals(f.Type)
	}
}

// findValidators notes where Validate is to be called: on t, or else on the structs embedded in it.
func (p *plan) findValidators(t reflect.Type, index []int) {
	if reflect.PointerTo(t).Implements(validatorType) {
		p.validators = append(p.validators, index)
		return
	}
	for f := range embedded(t) {
		before := len(p.validators)
		p.findValidators(f.Type, append(slices.Clone(index), f.Index...))
		if len(p.validators) > before && !f.IsExported() {
			p.fail(f, "is embedded unexported, so its Validate cannot be called")
		}
	}
}

// embedded yields the inlined structs of t.
func embedded(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if _, tagged := f.Tag.Lookup("set"); tagged || !f.Anonymous || f.Type.Kind() != reflect.Struct {
				continue
			}
			if !yield(f) {
				return
			}
		}
	}
}

// at gives the field f of v without allocating.
func (f *field) at(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}
