package script

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	lua "github.com/Shopify/go-lua"

	"example.com/svc/mta/event"
)

// generation is one load of the policy: what was compiled, its handlers, and the pool of states that ran it.
type generation struct {
	eng      *Engine
	name     string // of the policy in errors
	dir      string // where required files are looked for; empty when the policy is no file
	chunk    []byte // the compiled policy
	handlers []*handler

	filesMu sync.Mutex
	files   map[string]*file

	mu      sync.Mutex
	spare   []*vm // the state used last is at the end
	retired bool
}

// compileChunk compiles Lua text; the result is loaded in every state, since compiled functions of one state must not
// be shared with another.
func compileChunk(name string, src []byte) (chunk []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("script: compile %s: %v", name, r)
		}
	}()
	l := lua.NewState()
	if lerr := l.Load(bytes.NewReader(dropShebang(src)), "@"+name, "t"); lerr != nil {
		text, _ := l.ToString(-1)
		if text == "" {
			text = name + ": " + lerr.Error()
		}
		e := &Error{Value: text, text: text}
		if parts := strings.SplitN(text, ":", 3); len(parts) == 3 {
			e.Place = parts[0] + ":" + parts[1]
		}
		return nil, e
	}
	var b bytes.Buffer
	if err := l.Dump(&b); err != nil {
		return nil, fmt.Errorf("script: compile %s: %w", name, err)
	}
	return b.Bytes(), nil
}

// dropShebang blanks a first line that begins with "#"; line numbers stay.
func dropShebang(src []byte) []byte {
	if len(src) == 0 || src[0] != '#' {
		return src
	}
	if i := bytes.IndexByte(src, '\n'); i >= 0 {
		return src[i:]
	}
	return nil
}

// newState makes a state and runs the policy in it. The first one of a generation collects the handlers.
func (g *generation) newState(ctx context.Context, first bool) (*vm, error) {
	vm := newVM(g)
	if err := vm.begin(ctx, time.Now()); err != nil {
		return nil, err
	}
	vm.loading = &loading{first: first}
	g.eng.metrics.loads.Inc()
	err := vm.runPolicy()
	n := len(vm.handlers)
	vm.loading = nil
	vm.end()
	vm.uses = 0
	if err != nil {
		return nil, err
	}
	if n != len(g.handlers) {
		return nil, fmt.Errorf("script: %s registered %d handlers when it was loaded, and %d now: registrations must not "+
			"depend on anything that changes", g.name, len(g.handlers), n)
	}
	g.eng.metrics.alive.Inc()
	return vm, nil
}

// runPolicy runs the main chunk.
func (vm *vm) runPolicy() error {
	vm.pushTrampoline()
	if err := vm.l.Load(bytes.NewReader(vm.gen.chunk), "", "b"); err != nil {
		return fmt.Errorf("script: load %s: %w", vm.gen.name, err)
	}
	if err := vm.protected("", 0); err != nil {
		return err
	}
	vm.wipe()
	return nil
}

// take gives the state used last, or a new one.
func (g *generation) take(ctx context.Context) (*vm, error) {
	if g.eng.closed.Load() {
		return nil, ErrClosed
	}
	g.mu.Lock()
	for n := len(g.spare); n > 0; n = len(g.spare) {
		vm := g.spare[n-1]
		g.spare[n-1] = nil
		g.spare = g.spare[:n-1]
		if time.Since(vm.born) < g.eng.pool.age() {
			g.mu.Unlock()
			g.eng.metrics.spare.Dec()
			return vm, nil
		}
		g.eng.metrics.spare.Dec()
		g.eng.metrics.alive.Dec()
	}
	g.mu.Unlock()
	return g.newState(ctx, false)
}

// put takes a state back, or drops it when it is worn out or saw an error (flows CE-4, LU3).
func (g *generation) put(vm *vm) {
	pool := &g.eng.pool
	t, maxAge := time.Now(), pool.age()
	keep := !vm.broken && int64(vm.uses) < pool.maxUses.Load() && t.Sub(vm.born) < maxAge
	dropped := 0
	g.mu.Lock()
	if keep && !g.retired && int64(len(g.spare)) < pool.maxSpare.Load() {
		g.spare = append(g.spare, vm)
		g.eng.metrics.spare.Inc()
	} else {
		dropped++
	}
	// States at the bottom are used least: they leave when they are too old.
	if len(g.spare) > 1 && t.Sub(g.spare[0].born) >= maxAge {
		copy(g.spare, g.spare[1:])
		g.spare[len(g.spare)-1] = nil
		g.spare = g.spare[:len(g.spare)-1]
		g.eng.metrics.spare.Dec()
		dropped++
	}
	g.mu.Unlock()
	if dropped > 0 {
		g.eng.metrics.alive.Add(float64(-dropped))
	}
}

// retire drops the idle states; those in use are dropped when they come back.
func (g *generation) retire() {
	g.mu.Lock()
	n := len(g.spare)
	g.spare, g.retired = nil, true
	g.mu.Unlock()
	g.eng.metrics.spare.Add(float64(-n))
	g.eng.metrics.alive.Add(float64(-n))
}

// busHandlers is the handlers by event in order of registration.
func (g *generation) busHandlers() map[string][]event.Handler {
	m := make(map[string][]event.Handler)
	for _, h := range g.handlers {
		m[h.name] = append(m[h.name], h.onBus())
	}
	return m
}

// register puts the handlers on a bus that cannot replace.
func (g *generation) register(b event.Bus) error {
	for _, h := range g.handlers {
		if err := b.Register(h.name, h.onBus()); err != nil {
			return fmt.Errorf("script: %w", err)
		}
	}
	return nil
}
