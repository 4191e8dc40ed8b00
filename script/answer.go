package script

import (
	"fmt"
	"reflect"
	"strings"

	"example.com/svc/mta/event"
)

// argTag reads the arg tag of a field: its name in scripts, and whether the empty string is passed as nil.
func argTag(f reflect.StructField) (name string, opt bool) {
	tag, ok := f.Tag.Lookup("arg")
	if !ok {
		return lowerFirst(f.Name), false
	}
	name, rest, _ := strings.Cut(tag, ",")
	return name, rest == "opt"
}

func lowerFirst(s string) string { return strings.ToLower(s[:1]) + s[1:] }

// answerPlan says how the results of a Lua function become the answer of an event. See the package comment for nil.
type answerPlan struct {
	event   string
	none    bool // any value ends the chain
	free    bool // the event is not declared: the first result as it is
	nilPass bool // an explicit nil passes
	typ     reflect.Type
	conv    *conv
	fields  []answerField // of a struct: one result each
}

type answerField struct {
	index int
	name  string
	conv  *conv
}

// answerPlan makes the plan of a declared event, or of one that is not declared when d is nil.
func (c *compiler) answerPlan(name string, d *event.Declaration) (*answerPlan, error) {
	if d == nil {
		return &answerPlan{event: name, free: true}, nil
	}
	t := d.Result
	p := &answerPlan{event: name, typ: t, none: t == noneType}
	if p.none {
		return p, nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		p.nilPass = true
	default:
		p.nilPass = d.Mode == event.Chain
	}
	if t.Kind() == reflect.Struct && c.types.find(t) == nil && !isSettings(t) && !readsItself(t) {
		return p, c.answerFields(p, t)
	}
	cv, err := c.conv(t, name)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	p.conv = cv
	return p, nil
}

func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(textReaderType) || reflect.PointerTo(t).Implements(settingReader)
}

func (c *compiler) answerFields(p *answerPlan, t reflect.Type) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _ := argTag(f)
		if !f.IsExported() || name == "-" {
			continue
		}
		cv, err := c.conv(f.Type, p.event)
		if err != nil {
			return fmt.Errorf("answer %s: %w", name, err)
		}
		p.fields = append(p.fields, answerField{i, name, cv})
	}
	return nil
}

// read turns what lies on the stack into the answer.
func (p *answerPlan) read(vm *vm) (any, error) {
	l := vm.l
	n := l.Top()
	switch {
	case n == 0:
		return nil, event.Pass
	case p.none:
		return event.None{}, nil
	case p.free:
		return vm.toAny(1)
	case p.fields != nil:
		return p.readFields(vm, n)
	case l.IsNil(1):
		if p.nilPass {
			return nil, event.Pass
		}
		return nil, nil
	}
	v, err := p.conv.get(vm, 1)
	if err != nil {
		return nil, fmt.Errorf("the handler returned a wrong value: %w", err)
	}
	return v.Interface(), nil
}

// readFields makes a struct of several results; nil and missing ones are zero.
func (p *answerPlan) readFields(vm *vm, n int) (any, error) {
	if n == 1 && vm.l.IsNil(1) && p.nilPass {
		return nil, event.Pass
	}
	out := reflect.New(p.typ).Elem()
	for i, f := range p.fields {
		if i >= n {
			break
		}
		if vm.l.IsNil(i + 1) {
			continue
		}
		v, err := f.conv.get(vm, i+1)
		if err != nil {
			return nil, fmt.Errorf("the handler returned a wrong %s: %w", f.name, err)
		}
		out.Field(f.index).Set(v)
	}
	return out.Interface(), nil
}
