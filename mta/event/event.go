package event

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Declaration is the untyped view of an [Event], for script layers, documentation and the surface test.
type Declaration struct {
	// Name is the event name, such as "get_queue_config".
	Name string
	// Mode says how several handlers combine.
	Mode Mode
	// Args and Result are the types of the question and of the answer.
	Args, Result reflect.Type
}

// Event is a declared question with arguments A and answer R. It is immutable and safe for concurrent use.
type Event[A, R any] struct {
	decl Declaration
}

var declared struct {
	sync.Mutex
	byName map[string]Declaration
}

// Define declares an event. It is called for package-level variables only and panics when the name is taken, which is
// a mistake of the program. The table of declarations is write-once data; handlers live on a [Bus].
func Define[A, R any](name string, m Mode) *Event[A, R] {
	e := Dynamic[A, R](name, m)
	declared.Lock()
	defer declared.Unlock()
	if declared.byName == nil {
		declared.byName = make(map[string]Declaration)
	}
	if _, ok := declared.byName[name]; ok {
		panic("event: " + name + " is declared twice")
	}
	declared.byName[name] = e.decl
	return e
}

// Dynamic makes an event whose name exists only at run time, such as the constructor of a delivery protocol. It does
// not enter the table of declarations.
func Dynamic[A, R any](name string, m Mode) *Event[A, R] {
	return &Event[A, R]{decl: Declaration{
		Name:   name,
		Mode:   m,
		Args:   reflect.TypeFor[A](),
		Result: reflect.TypeFor[R](),
	}}
}

// Lookup returns the declaration of name, and whether there is one.
func Lookup(name string) (Declaration, bool) {
	declared.Lock()
	defer declared.Unlock()
	d, ok := declared.byName[name]
	return d, ok
}

// Declarations returns all declared events, in no particular order.
func Declarations() []Declaration {
	declared.Lock()
	defer declared.Unlock()
	ds := make([]Declaration, 0, len(declared.byName))
	for _, d := range declared.byName {
		ds = append(ds, d)
	}
	return ds
}

// Check returns a [*DuplicateError] when name is a declared event of mode [Single] that already has a handler on b.
func Check(b Bus, name, source string) error {
	if d, ok := Lookup(name); ok && d.Mode == Single {
		return checkSingle(b, name, source)
	}
	return nil
}

func checkSingle(b Bus, name, source string) error {
	if hs := b.Handlers(name); len(hs) > 0 {
		return &DuplicateError{Event: name, First: hs[0].Source, Second: source}
	}
	return nil
}

// Declaration returns the untyped view of e.
func (e *Event[A, R]) Declaration() Declaration { return e.decl }

// Name returns the event name.
func (e *Event[A, R]) Name() string { return e.decl.Name }

// On registers fn on b. The place of the call is kept for error texts. A second handler for an event of mode [Single]
// gives a [*DuplicateError].
func (e *Event[A, R]) On(b Bus, fn func(context.Context, A) (R, error)) error {
	source := callerPlace()
	if e.decl.Mode == Single {
		if err := checkSingle(b, e.decl.Name, source); err != nil {
			return err
		}
	}
	return b.Register(e.decl.Name, Handler{
		Source: source,
		Call: func(ctx context.Context, args any) (any, error) {
			a, ok := args.(A)
			if !ok {
				return nil, fmt.Errorf("%s handler takes %v, got %T", e.decl.Name, e.decl.Args, args)
			}
			return fn(ctx, a)
		},
	})
}

// callerPlace returns file:line of whoever called the caller, with the directory cut.
func callerPlace() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "unknown place"
	}
	return file[strings.LastIndexByte(file, '/')+1:] + ":" + strconv.Itoa(line)
}

// Handled reports whether b has a handler for e. Raisers use it to skip the work of building arguments.
func (e *Event[A, R]) Handled(b Bus) bool {
	return b != nil && len(b.Handlers(e.decl.Name)) > 0
}

// Call asks the handlers of e on b in order. The first answer ends the chain with handled true; a handler that
// returns [Pass] lets the next one run. An error ends the chain, is returned wrapped with the source of the handler,
// and handled is true. A nil bus has no handlers.
func (e *Event[A, R]) Call(ctx context.Context, b Bus, args A) (r R, handled bool, err error) {
	if b == nil {
		return r, false, nil
	}
	hs := b.Handlers(e.decl.Name)
	if len(hs) == 0 {
		return r, false, nil
	}
	var boxed any = args
	for i := range hs {
		v, err := hs[i].Call(ctx, boxed)
		if err != nil {
			if errors.Is(err, Pass) {
				continue
			}
			var zero R
			return zero, true, &HandlerError{Event: e.decl.Name, Source: hs[i].Source, Err: err}
		}
		if v == nil {
			return r, true, nil
		}
		r, ok := v.(R)
		if !ok {
			return r, true, &HandlerError{Event: e.decl.Name, Source: hs[i].Source,
				Err: fmt.Errorf("answered with %T, want %v", v, e.decl.Result)}
		}
		return r, true, nil
	}
	return r, false, nil
}

// HandlerError is the error of a handler with the event and the place of registration. It unwraps to the cause, so
// that errors.As finds a rejection.
type HandlerError struct {
	Event  string
	Source string
	Err    error
}

// Error names event, place and cause.
func (e *HandlerError) Error() string {
	return e.Event + " handler at " + e.Source + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *HandlerError) Unwrap() error { return e.Err }
