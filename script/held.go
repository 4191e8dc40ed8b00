package script

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Held is a state kept by one owner across several calls, with the table that a handler returned: the connection object
// of a delivery protocol written in Lua (flows CU-2 to CU-5). It is used by one goroutine at a time.
type Held struct {
	h      *handler
	vm     *vm
	object any
	faulty bool // an error left a call: the state is not used by others afterwards (LU3)
}

// errHeld is returned once a held state cannot be used any more.
var errHeld = errors.New("the held script state is closed")

// Hold calls the first handler registered under name with args and keeps the state and the table it returns. Errors of
// the policy are [*Error]. The caller closes what it got.
func (e *Engine) Hold(ctx context.Context, name string, args ...any) (*Held, error) {
	h, err := e.handler(name)
	if err != nil {
		return nil, err
	}
	vm, err := h.gen.take(ctx)
	if err != nil {
		return nil, err
	}
	held := &Held{h: h, vm: vm}
	err = held.run(ctx, name, func() (int, error) {
		vm.l.PushLightUserData(vm.handlers[h.index])
		return held.pushArgs(args)
	}, func() error {
		if !vm.l.IsTable(1) {
			return fmt.Errorf("%s handler at %s returned a %s, want a table", name, h.place, vm.typeName(1))
		}
		held.object = vm.l.ToValue(1)
		return nil
	})
	if err != nil {
		held.Close()
		return nil, err
	}
	return held, nil
}

// Has reports whether the table has a function of that name.
func (h *Held) Has(method string) bool {
	if h.vm == nil {
		return false
	}
	l := h.vm.l
	defer l.SetTop(l.Top())
	l.PushLightUserData(h.object)
	l.PushString(method)
	l.RawGet(-2)
	return l.IsFunction(-1)
}

// Call calls a function of the table with the table and args, and returns its results as converted to any. After an
// error of the policy the object can be called again.
func (h *Held) Call(ctx context.Context, method string, args ...any) (results []any, err error) {
	if h.vm == nil {
		return nil, errHeld
	}
	vm := h.vm
	err = h.run(ctx, h.h.name+"."+method, func() (int, error) {
		vm.l.PushLightUserData(h.object)
		vm.l.PushString(method)
		vm.l.RawGet(-2)
		vm.l.Insert(-2) // function, object
		n, err := h.pushArgs(args)
		return n + 1, err
	}, func() error {
		results, err = vm.results()
		return err
	})
	return results, err
}

func (h *Held) pushArgs(args []any) (int, error) {
	h.vm.room(len(args) + 3)
	for _, a := range args {
		if err := h.vm.pushAny(a, 0); err != nil {
			return 0, err
		}
	}
	return len(args), nil
}

// run makes one call: push leaves the function and its arguments, read takes the results.
func (h *Held) run(ctx context.Context, name string, push func() (int, error), read func() error) error {
	start := time.Now()
	h.h.started.Inc()
	defer h.h.latency.ObserveSince(start)
	vm := h.vm
	if err := vm.begin(ctx, start); err != nil {
		return err
	}
	err := vm.guarded(func() error {
		vm.pushTrampoline()
		n, err := push()
		if err != nil {
			return err
		}
		if err := vm.protected(name, n); err != nil {
			return err
		}
		return read()
	})
	vm.end()
	h.faulty = h.faulty || err != nil
	if vm.lost {
		h.Close()
		return err
	}
	vm.wipe()
	return err
}

// Close gives the state back. It may be called twice.
func (h *Held) Close() {
	if h.vm == nil {
		return
	}
	h.vm.broken = h.vm.broken || h.faulty
	h.h.gen.put(h.vm)
	h.vm, h.object = nil, nil
}
