package script

import (
	"context"
	"sync/atomic"
)

// marker is the context given to bound functions. It knows the state, so that callbacks find out whether they are
// called from where they may be.
type marker struct {
	context.Context
	vm    *vm
	depth int
	done  atomic.Bool
}

// Value answers for the key of this package.
func (m *marker) Value(key any) any {
	if key == (vmKey{}) {
		return m
	}
	return m.Context.Value(key)
}

// caller finds the state that called a bound function with ctx, nil when the call is over or there was none.
func caller(ctx context.Context) *vm {
	if m, ok := ctx.Value(vmKey{}).(*marker); ok && !m.done.Load() {
		return m.vm
	}
	return nil
}

// Place is the innermost line of Lua that runs, such as "policy.lua:7", for a bound function that was called with ctx
// or a context made from it. It is "" when no policy called, or once the call is over. Call it on the goroutine of the
// bound function, before that returns (LU1).
func Place(ctx context.Context) string {
	if vm := caller(ctx); vm != nil {
		return vm.luaPlace()
	}
	return ""
}

// Loading reports whether the policy that called with ctx is being loaded: it runs from its first line to its last, as
// it does once for every state. What may happen only once belongs into a handler. The rules of [Place] hold.
func Loading(ctx context.Context) bool {
	vm := caller(ctx)
	return vm != nil && vm.loading != nil
}

// Forget makes v, a pointer to a scoped object such as a message, unusable for the policy that called with ctx: from now
// on it finds [ErrStale] in what it still holds. A bound function that gives v away calls it, so that v has one holder
// (M1). The rules of [Place] hold; without a policy it does nothing.
func Forget(ctx context.Context, v any) {
	vm := caller(ctx)
	if vm == nil {
		return
	}
	for _, r := range vm.scoped {
		if r.v == v {
			r.v, r.enc = nil, nil
		}
	}
}

// EngineFrom is the engine whose policy called with ctx, nil when no policy did. It may be kept.
func EngineFrom(ctx context.Context) *Engine {
	if m, ok := ctx.Value(vmKey{}).(*marker); ok {
		return m.vm.eng
	}
	return nil
}
