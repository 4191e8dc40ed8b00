package script

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	lua "github.com/Shopify/go-lua"
)

// bound is a function ready to be called from Lua. It is made once per engine and shared by all states.
type bound struct {
	name     string // in error texts: "svc.on", "message:set_meta"
	fn       reflect.Value
	typ      reflect.Type
	withCtx  bool
	method   bool
	variadic bool
	in       []param
	out      []pusher
	withErr  bool
	multi    bool // the only result is Values
}

// param is one parameter of a bound function.
type param struct {
	name     string
	optional bool
	zero     reflect.Value // given when an optional parameter is left out
	conv     *conv
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
	valuesType  = reflect.TypeFor[Values]()
)

// compile makes a bound function of a declaration. owner is the type of a method, nil for functions.
func (c *compiler) compile(prefix string, f *Func, owner *typeInfo) (*bound, error) {
	v := reflect.ValueOf(f.fn)
	name := prefix + f.Name
	if v.Kind() != reflect.Func || v.IsNil() {
		return nil, fmt.Errorf("%s: not a function but %T", name, f.fn)
	}
	b := &bound{name: name, fn: v, typ: v.Type(), variadic: v.Type().IsVariadic(), method: owner != nil}
	if err := c.params(b, f, owner); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if err := c.results(b); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

func (c *compiler) params(b *bound, f *Func, owner *typeInfo) error {
	i := 0
	if b.typ.NumIn() > 0 && b.typ.In(0) == contextType {
		b.withCtx, i = true, 1
	}
	if owner != nil {
		if b.typ.NumIn() <= i || c.types.find(b.typ.In(i)) != owner {
			return fmt.Errorf("the first parameter of a method of %s is not %v", owner.name, owner.base)
		}
	}
	for n := 0; i < b.typ.NumIn(); i++ {
		t := b.typ.In(i)
		if b.variadic && i == b.typ.NumIn()-1 {
			t = t.Elem()
		}
		cv, err := c.conv(t, f.Name)
		if err != nil {
			return fmt.Errorf("parameter %d: %w", i+1, err)
		}
		p := param{conv: cv, optional: cv.optional}
		if owner != nil && len(b.in) == 0 {
			p.name = "self"
		} else {
			var marked bool
			p.name, marked = f.argName(n)
			p.optional = p.optional || marked
			n++
		}
		p.zero = reflect.Zero(t)
		b.in = append(b.in, p)
	}
	if n := len(b.in); len(f.args) > n {
		return fmt.Errorf("%d names for %d parameters", len(f.args), n)
	}
	return nil
}

func (c *compiler) results(b *bound) error {
	n := b.typ.NumOut()
	if n > 0 && b.typ.Out(n-1) == errorType {
		b.withErr = true
		n--
	}
	if n == 1 && b.typ.Out(0) == valuesType {
		b.multi = true
		return nil
	}
	for i := range n {
		p, err := c.pusher(b.typ.Out(i))
		if err != nil {
			return fmt.Errorf("result %d: %w", i+1, err)
		}
		b.out = append(b.out, p)
	}
	return nil
}

// pushBound pushes b as a Lua function of this state.
func (vm *vm) pushBound(b *bound) {
	vm.l.PushGoFunction(func(*lua.State) int { return b.invoke(vm) })
}

// invoke calls b with the arguments on the stack of vm and pushes the results.
func (b *bound) invoke(vm *vm) int {
	base := len(vm.scratch)
	if b.withCtx {
		vm.scratch = append(vm.scratch, reflect.ValueOf(vm.context()))
	}
	given := vm.l.Top()
	fixed := len(b.in)
	if b.variadic {
		fixed--
	}
	for i := range fixed {
		vm.scratch = append(vm.scratch, b.arg(vm, &b.in[i], i+1, given, base))
	}
	if b.variadic {
		for i := fixed; i < given; i++ {
			vm.scratch = append(vm.scratch, b.arg(vm, &b.in[fixed], i+1, given, base))
		}
	}
	out := b.run(vm, base)
	if b.withErr {
		if e := out[len(out)-1]; !e.IsNil() {
			return vm.raiseError(e.Interface().(error))
		}
	}
	return b.push(vm, out)
}

// arg converts argument i, counted from 1.
func (b *bound) arg(vm *vm, p *param, i, given, base int) reflect.Value {
	if i > given || vm.l.IsNil(i) {
		if p.optional {
			if p.conv.absent != nil {
				if v, err := p.conv.absent(); err == nil {
					return v
				}
			}
			return p.zero
		}
		if !p.conv.takesNil {
			vm.drop(base)
			b.badArg(vm, p, i, fmt.Errorf("%s expected, got %s", p.conv.want, vm.typeName(i)))
		}
	}
	v, err := p.conv.get(vm, i)
	if err != nil {
		vm.drop(base)
		b.badArg(vm, p, i, err)
	}
	return v
}

// whole is a fault of settings, which says by itself what it is about.
type whole struct{ error }

func (w whole) Unwrap() error { return w.error }

func (b *bound) badArg(vm *vm, p *param, i int, err error) {
	var w whole
	if errors.As(err, &w) {
		vm.raiseError(w.error)
	}
	if b.method {
		i--
	}
	label := fmt.Sprintf("#%d", i)
	switch {
	case b.method && i == 0:
		label = "self"
	case p.name != "":
		label += " (" + p.name + ")"
	}
	vm.raiseError(fmt.Errorf("bad argument %s to '%s': %w", label, b.name, err))
}

// drop forgets arguments gathered since base.
func (vm *vm) drop(base int) {
	clear(vm.scratch[base:])
	vm.scratch = vm.scratch[:base]
}

// run calls the Go function with the arguments from base on.
func (b *bound) run(vm *vm, base int) []reflect.Value {
	defer vm.guard()
	in := vm.scratch[base:len(vm.scratch):len(vm.scratch)]
	defer vm.drop(base)
	if !b.withCtx || vm.deadline.IsZero() {
		return b.fn.Call(in)
	}
	start := time.Now()
	out := b.fn.Call(in)
	vm.deadline = vm.deadline.Add(time.Since(start)) // waiting is bounded by the context, not by the budget
	return out
}

func (b *bound) push(vm *vm, out []reflect.Value) int {
	if b.multi {
		vals := out[0].Interface().(Values)
		vm.room(len(vals) + 4)
		for _, v := range vals {
			vm.mustPush(vm.pushAny(v, 0))
		}
		return len(vals)
	}
	for i, p := range b.out {
		vm.mustPush(p(vm, out[i]))
	}
	return len(b.out)
}
