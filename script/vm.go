package script

import (
	"context"
	"fmt"
	"reflect"
	"time"

	lua "github.com/Shopify/go-lua"
)

// Slots of the registry of a state. They lie in the array part of the registry table, where a lookup costs least.
const (
	slotTrampoline = 3 + iota
	slotLoaded
	slotPackage
	slotFirst // metatables of declared types
)

// vm is one Lua state with the policy loaded. It runs on one goroutine at a time (LU1).
type vm struct {
	l    *lua.State
	eng  *Engine
	gen  *generation
	born time.Time
	uses int

	loading  *loading // not nil while the policy runs for the first time in this state
	handlers []any    // functions by index of registration

	// Of the call that runs.
	active   bool
	ctx      context.Context
	marked   context.Context // ctx that knows vm, made when a function asks for it
	depth    int             // of events raised by handlers
	deadline time.Time       // zero: none
	left     int64           // hook calls until the instruction budget ends; negative: no budget
	serial   uint64          // of the call
	scoped   []*ref
	causes   []cause
	misses   []miss   // names that modules do not have
	cursors  []cursor // walks with next
	steps    int      // of walks
	place    string
	trace    string
	broken   bool // not to be pooled again
	lost     bool // not to be called again

	scratch []reflect.Value // arguments of running bound functions, a stack
	path    []any           // tables being converted
	nodes   int             // entries converted
}

// hookEvery is after how many VM instructions the budget is looked at.
const hookEvery = 10_000

// maxEventDepth bounds handlers that raise events whose handlers raise events.
const maxEventDepth = 32

type vmKey struct{}

func newVM(g *generation) *vm {
	vm := &vm{l: lua.NewState(), eng: g.eng, gen: g, born: time.Now()}
	l := vm.l
	for i := slotTrampoline; i < slotFirst+vm.eng.typeCount(); i++ {
		l.PushBoolean(false)
		l.RawSetInt(lua.RegistryIndex, i)
	}
	l.PushGoFunction(vm.trampoline)
	l.RawSetInt(lua.RegistryIndex, slotTrampoline)
	vm.openLibraries()
	lua.SetDebugHook(l, vm.tick, lua.MaskCount, hookEvery)
	return vm
}

// tick is the debug hook: it ends calls that run too long (LU5).
func (vm *vm) tick(*lua.State, lua.Debug) {
	if !vm.active {
		return
	}
	vm.eng.upvalues.prune(vm.l)
	if vm.left > 0 {
		if vm.left--; vm.left == 0 {
			panic(&abort{fmt.Errorf("%w: over %d instructions", ErrBudget, vm.eng.cfg.InstructionBudget)})
		}
	}
	vm.checkTime()
}

// checkTime ends the call when its time is over or its context is done.
func (vm *vm) checkTime() {
	if !vm.deadline.IsZero() && time.Now().After(vm.deadline) {
		panic(&abort{fmt.Errorf("%w: over %v", ErrBudget, vm.eng.cfg.CallTimeout)})
	}
	if vm.ctx.Err() != nil {
		panic(abortFor(vm.ctx))
	}
}

// begin prepares the state for one call.
func (vm *vm) begin(ctx context.Context, now time.Time) error {
	depth := 0
	if outer, ok := ctx.Value(vmKey{}).(*marker); ok {
		depth = outer.depth + 1
		if depth > maxEventDepth {
			return fmt.Errorf("events are nested over %d deep", maxEventDepth)
		}
	}
	vm.active, vm.ctx, vm.marked, vm.depth = true, ctx, nil, depth
	vm.serial++
	vm.deadline, vm.left = time.Time{}, 0
	if t := vm.eng.cfg.CallTimeout; t > 0 {
		vm.deadline = now.Add(t)
	}
	if n := vm.eng.cfg.InstructionBudget; n > 0 {
		vm.left = n/hookEvery + 1
	}
	return nil
}

// end makes what the call handed out unusable (LU2) and drops what it left.
func (vm *vm) end() {
	for i, r := range vm.scoped {
		r.v, r.enc = nil, nil
		vm.scoped[i] = nil
	}
	vm.scoped = vm.scoped[:0]
	clear(vm.causes)
	vm.causes = vm.causes[:0]
	clear(vm.misses)
	vm.misses = vm.misses[:0]
	vm.cursors = nil
	clear(vm.path)
	vm.path, vm.nodes = vm.path[:0], 0
	if m, ok := vm.marked.(*marker); ok {
		m.done.Store(true)
	}
	vm.active, vm.ctx, vm.marked = false, nil, nil
	vm.uses++
	vm.eng.upvalues.clear(vm.l)
}

// wipeSlots is how many slots of the Lua stack are emptied after a call: those that handlers commonly use.
const wipeSlots = 64

// wipe empties the stack, so that an idle state does not keep what its last call worked on. The VM leaves old values in
// slots that are free.
func (vm *vm) wipe() {
	vm.l.SetTop(0)
	if vm.l.CheckStack(wipeSlots) {
		vm.l.SetTop(wipeSlots)
		vm.l.SetTop(0)
	}
}

// trampoline calls its first argument with the rest. It stands between the protected call and the policy, so that an
// error finds the Lua frames still in place.
func (vm *vm) trampoline(l *lua.State) int {
	defer func() {
		if r := recover(); r != nil {
			err := asLuaPanic(r)
			vm.capture()
			vm.explainMiss(err)
			panic(err)
		}
	}()
	l.Call(l.Top()-1, lua.MultipleReturns)
	return l.Top()
}

// pushTrampoline begins a protected call: then push the function and its arguments.
func (vm *vm) pushTrampoline() { vm.l.RawGetInt(lua.RegistryIndex, slotTrampoline) }

// protected calls what pushTrampoline began, with argc arguments of the function. Results are left on the stack. After
// an error nothing is left, and the state is not to be used again (LU3).
func (vm *vm) protected(name string, argc int) (err error) {
	defer func() {
		if r := recover(); r != nil { // the VM lost its way
			vm.broken, vm.lost = true, true
			err = vm.takeError(name, asLuaPanic(r))
		}
	}()
	if perr := vm.l.ProtectedCall(argc+1, lua.MultipleReturns, 0); perr != nil {
		perr = asLuaPanic(perr)
		vm.broken, vm.lost = true, vm.lost || fatal(perr)
		return vm.takeError(name, perr)
	}
	return nil
}

// room makes sure that n more values can be pushed.
func (vm *vm) room(n int) {
	if !vm.l.CheckStack(n) {
		panic(&abort{fmt.Errorf("%w: Lua stack is full", ErrBudget)})
	}
}

// context is the context of the call, marked with the state, for bound functions.
func (vm *vm) context() context.Context {
	if vm.marked == nil {
		vm.marked = &marker{Context: vm.ctx, vm: vm, depth: vm.depth}
	}
	return vm.marked
}
