package script

import (
	"context"
	"errors"
	"fmt"

	lua "github.com/Shopify/go-lua"
)

// Callback is a Lua function given to a Go function. It lives in one state: it can be called only while that state
// runs, by the Go functions it called, with the context they were given (LU1). It may be kept and called during a later
// call of the same state, for example by a function that was made from it.
type Callback struct {
	vm *vm
	fn any
}

var errForeign = errors.New("a Lua function was called from outside the call it belongs to")

// callback makes a Callback of the function at idx.
func (vm *vm) callback(idx int) *Callback { return &Callback{vm: vm, fn: vm.l.ToValue(idx)} }

// Call runs the function with args, converted like results of Go functions, and returns its results, converted like
// arguments of type any. An error of the function is returned as an [*Error] and may be returned on.
func (c *Callback) Call(ctx context.Context, args ...any) (results []any, err error) {
	if c == nil || c.vm == nil {
		return nil, errors.New("no Lua function")
	}
	m, ok := ctx.Value(vmKey{}).(*marker)
	if !ok || m.vm != c.vm || m.done.Load() {
		return nil, fmt.Errorf("%w: %w", errForeign, ErrStale)
	}
	return c.vm.callValue(c.fn, args)
}

// callValue calls a Lua function value from inside a bound function.
func (vm *vm) callValue(fn any, args []any) (results []any, err error) {
	l := vm.l
	top := l.Top()
	defer func() { l.SetTop(top) }()
	vm.room(len(args) + 3)
	vm.pushTrampoline()
	l.PushLightUserData(fn)
	for _, a := range args {
		if err := vm.pushAny(a, 0); err != nil {
			return nil, err
		}
	}
	if perr := l.ProtectedCall(len(args)+1, lua.MultipleReturns, 0); perr != nil {
		perr = asLuaPanic(perr)
		if fatal(perr) {
			panic(perr)
		}
		return nil, vm.takeError("", perr)
	}
	for i := top + 1; i <= l.Top(); i++ {
		v, err := vm.toAny(i)
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", i-top, err)
		}
		results = append(results, v)
	}
	return results, nil
}

// pushCallback pushes the function again, in its own state only.
func (vm *vm) pushCallback(c *Callback) error {
	if c == nil {
		vm.l.PushNil()
		return nil
	}
	if c.vm != vm {
		return errForeign
	}
	vm.l.PushLightUserData(c.fn)
	return nil
}
