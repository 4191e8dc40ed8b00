package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"

	"example.com/svc/mta/event"
)

// Engine runs one policy against one bus. It is safe for concurrent use.
type Engine struct {
	cfg     Config
	metrics *metrics
	modules map[string]*moduleInfo
	names   []string         // of modules, in order
	absent  map[string]error // modules that are known and not served
	pool    poolLimits

	upvalues *upvalueList
	tables   *tableParts

	compileMu sync.Mutex // guards comp and types
	comp      *compiler
	types     *typeSet
	dynamic   sync.Map // reflect.Type to pusher
	argPlans  sync.Map // reflect.Type to *argPlan

	loadMu sync.Mutex // one load at a time
	gen    atomic.Pointer[generation]
	closed atomic.Bool
}

// replacer is the ability of a bus to swap the handlers of a group in one step; [event.Local] has it.
type replacer interface {
	Replace(group string, next map[string][]event.Handler)
}

// maxPolicySize bounds files that are read as Lua.
const maxPolicySize = 16 << 20

// New binds the modules and returns an engine that has no policy yet: call [Engine.Load]. It returns an error when a
// module or type is declared twice, or when a function takes or returns what cannot be converted.
func New(cfg Config) (*Engine, error) {
	if cfg.Path == "" && cfg.Source == nil {
		return nil, errors.New("script: neither a policy file nor its text was given")
	}
	if cfg.Bus == nil {
		return nil, errors.New("script: no bus was given")
	}
	e := &Engine{cfg: cfg.withDefaults(), modules: map[string]*moduleInfo{}, absent: map[string]error{},
		types: newTypeSet(), upvalues: findUpvalueList(), tables: findTableParts()}
	e.pool.set(&e.cfg)
	e.metrics = newMetrics(cfg.Metrics)
	e.comp = &compiler{types: e.types, convs: map[convKey]*conv{}, pushers: map[reflect.Type]*lazyPusher{}}
	if err := e.bindModules(); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	return e, nil
}

// Load reads and compiles the policy, runs it once, and puts its handlers on the bus in place of those of the previous
// load, in one step. When it fails nothing changes. Errors of the policy are [*Error] with place and Lua stack. A second
// load needs a bus that can replace handlers. ctx bounds the run of the policy.
func (e *Engine) Load(ctx context.Context) error {
	e.loadMu.Lock()
	defer e.loadMu.Unlock()
	if e.closed.Load() {
		return ErrClosed
	}
	old := e.gen.Load()
	rep, canReplace := e.cfg.Bus.(replacer)
	if old != nil && !canReplace {
		return fmt.Errorf("script: cannot load again: handlers on a %T cannot be replaced", e.cfg.Bus)
	}
	g, err := e.newGeneration(ctx)
	if err != nil {
		return err
	}
	if canReplace {
		rep.Replace(e.cfg.Group, g.busHandlers())
	} else if err := g.register(e.cfg.Bus); err != nil {
		return err
	}
	e.gen.Store(g)
	if old != nil {
		old.retire()
	}
	return nil
}

// newGeneration compiles the policy and runs it in a first state.
func (e *Engine) newGeneration(ctx context.Context) (*generation, error) {
	g := &generation{eng: e, files: map[string]*file{}}
	src := e.cfg.Source
	g.name = e.cfg.Name
	if e.cfg.Path != "" {
		b, err := readBounded(e.cfg.Path)
		if err != nil {
			return nil, fmt.Errorf("script: read policy: %w", err)
		}
		src, g.name, g.dir = b, filepath.Base(e.cfg.Path), filepath.Dir(e.cfg.Path)
	}
	var err error
	if g.chunk, err = compileChunk(g.name, src); err != nil {
		return nil, err
	}
	first, err := g.newState(ctx, true)
	if err != nil {
		return nil, err
	}
	g.put(first)
	return g, nil
}

// readBounded reads a file of bounded size.
func readBounded(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if st.Size() > maxPolicySize {
		return nil, fmt.Errorf("%s is over %d bytes", path, maxPolicySize)
	}
	return os.ReadFile(path)
}

// Call runs the first handler registered under name, for example "main", outside the bus, and returns its results as
// converted to any. Errors are [*Error].
func (e *Engine) Call(ctx context.Context, name string, args ...any) ([]any, error) {
	h, err := e.handler(name)
	if err != nil {
		return nil, err
	}
	return h.callValues(ctx, args)
}

// handler finds the first handler of the loaded policy for name.
func (e *Engine) handler(name string) (*handler, error) {
	if e.closed.Load() {
		return nil, ErrClosed
	}
	g := e.gen.Load()
	if g == nil {
		return nil, errors.New("script: no policy is loaded")
	}
	for _, h := range g.handlers {
		if h.name == name {
			return h, nil
		}
	}
	return nil, fmt.Errorf("script: the policy registers no handler for %q", name)
}

// Handles reports whether the loaded policy registers a handler for name.
func (e *Engine) Handles(name string) bool {
	_, err := e.handler(name)
	return err == nil
}

// Close takes the handlers off the bus, when the bus can replace, and drops idle states. Calls in flight finish; later
// ones get [ErrClosed].
func (e *Engine) Close() {
	e.loadMu.Lock()
	defer e.loadMu.Unlock()
	if e.closed.Swap(true) {
		return
	}
	if rep, ok := e.cfg.Bus.(replacer); ok {
		rep.Replace(e.cfg.Group, nil)
	}
	if g := e.gen.Load(); g != nil {
		g.retire()
	}
}

func (e *Engine) typeCount() int {
	e.compileMu.Lock()
	defer e.compileMu.Unlock()
	return len(e.types.list)
}

// dynamicPusher returns the pusher of a type met at run time.
func (e *Engine) dynamicPusher(t reflect.Type) (pusher, error) {
	if p, ok := e.dynamic.Load(t); ok {
		return p.(pusher), nil
	}
	e.compileMu.Lock()
	defer e.compileMu.Unlock()
	p, err := e.comp.pusher(t)
	if err != nil {
		return nil, err
	}
	e.dynamic.Store(t, p)
	return p, nil
}
