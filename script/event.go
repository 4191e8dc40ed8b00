package script

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
)

// handler is one registration of a policy. In every state of the generation it is the function with the same index.
type handler struct {
	gen     *generation
	name    string
	index   int
	place   string
	args    *argPlan // nil when the event is not declared: found by the type of the argument
	answer  *answerPlan
	started *metric.CounterValue
	latency *metric.HistogramValue
}

func (h *handler) onBus() event.Handler {
	return event.Handler{Source: h.place, Group: h.gen.eng.cfg.Group, Call: h.call}
}

// call answers one event.
func (h *handler) call(ctx context.Context, args any) (answer any, err error) {
	err = h.with(ctx, func(vm *vm) error {
		plan := h.args
		if plan == nil {
			var perr error
			if plan, perr = h.gen.eng.argPlan(reflect.TypeOf(args)); perr != nil {
				return perr
			}
		}
		vm.pushTrampoline()
		vm.l.PushLightUserData(vm.handlers[h.index])
		n, perr := plan.push(vm, args)
		if perr != nil {
			return perr
		}
		if perr := vm.protected(h.name, n); perr != nil {
			return perr
		}
		answer, perr = h.answer.read(vm)
		return perr
	})
	return answer, err
}

// callValues calls the handler with plain values.
func (h *handler) callValues(ctx context.Context, args []any) (results []any, err error) {
	err = h.with(ctx, func(vm *vm) error {
		vm.room(len(args) + 3)
		vm.pushTrampoline()
		vm.l.PushLightUserData(vm.handlers[h.index])
		for _, a := range args {
			if err := vm.pushAny(a, 0); err != nil {
				return err
			}
		}
		if err := vm.protected(h.name, len(args)); err != nil {
			return err
		}
		var err error
		results, err = vm.results()
		return err
	})
	return results, err
}

// results converts what lies on the stack.
func (vm *vm) results() (results []any, err error) {
	for i := 1; i <= vm.l.Top(); i++ {
		v, err := vm.toAny(i)
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", i, err)
		}
		results = append(results, v)
	}
	return results, nil
}

// with runs f with a state that is inside a call.
func (h *handler) with(ctx context.Context, f func(*vm) error) error {
	start := time.Now()
	h.started.Inc()
	defer h.latency.ObserveSince(start)
	vm, err := h.gen.take(ctx)
	if err != nil {
		return err
	}
	if err := vm.begin(ctx, start); err != nil {
		h.gen.put(vm)
		return err
	}
	err = vm.guarded(func() error { return f(vm) })
	if err != nil && err != event.Pass {
		vm.broken = true // LU3
	}
	vm.end()
	if !vm.broken {
		vm.wipe()
	}
	h.gen.put(vm)
	return err
}

// guarded runs f, which works on the state from outside of any protected call. What the VM throws there ends as an
// error.
func (vm *vm) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			vm.broken, vm.lost = true, true
			err = vm.takeError("", asLuaPanic(r))
		}
	}()
	return f()
}

// argPlan says how the argument of an event becomes arguments of a Lua function.
type argPlan struct {
	whole  pusher // of an argument that is one value
	ptr    bool   // the argument points to the struct
	fields []argField
}

type argField struct {
	index int
	push  pusher
	opt   bool // the empty string is nil
}

var noneType = reflect.TypeFor[event.None]()

// argPlan finds or makes the plan for arguments of type t.
func (e *Engine) argPlan(t reflect.Type) (*argPlan, error) {
	if p, ok := e.argPlans.Load(t); ok {
		return p.(*argPlan), nil
	}
	e.compileMu.Lock()
	defer e.compileMu.Unlock()
	p, err := e.comp.argPlan(t)
	if err != nil {
		return nil, err
	}
	e.argPlans.Store(t, p)
	return p, nil
}

// argPlan spreads structs that are neither objects nor values with a text form, in field order.
func (c *compiler) argPlan(t reflect.Type) (*argPlan, error) {
	if t == nil || t == noneType {
		return &argPlan{}, nil
	}
	st, ptr := t, false
	if t.Kind() == reflect.Pointer {
		st, ptr = t.Elem(), true
	}
	one := st.Kind() != reflect.Struct || c.types.find(st) != nil || isSettings(st) || st.Implements(textWriterType)
	if one {
		p, err := c.pusher(t)
		if err != nil {
			return nil, err
		}
		return &argPlan{whole: p}, nil
	}
	plan := &argPlan{ptr: ptr}
	for i := range st.NumField() {
		f := st.Field(i)
		name, opt := argTag(f)
		if !f.IsExported() || name == "-" {
			continue
		}
		p, err := c.pusher(f.Type)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", name, err)
		}
		plan.fields = append(plan.fields, argField{index: i, push: p, opt: opt && f.Type.Kind() == reflect.String})
	}
	return plan, nil
}

// push pushes the arguments and returns how many there are.
func (p *argPlan) push(vm *vm, args any) (int, error) {
	v := reflect.ValueOf(args)
	if p.whole != nil {
		return 1, p.whole(vm, v)
	}
	if len(p.fields) == 0 {
		return 0, nil
	}
	if p.ptr {
		if v.IsNil() {
			return 0, errors.New("the argument struct is nil")
		}
		v = v.Elem()
	}
	vm.room(len(p.fields) + 3)
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.Field(f.index)
		if f.opt && fv.Len() == 0 {
			vm.l.PushNil()
			continue
		}
		if err := f.push(vm, fv); err != nil {
			return 0, err
		}
	}
	return len(p.fields), nil
}
