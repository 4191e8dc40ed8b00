package script

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	lua "github.com/Shopify/go-lua"
)

// Errors that callers may look for with errors.Is.
var (
	// ErrBudget is the cause when a call ran longer than [Config.CallTimeout] or [Config.InstructionBudget] allow.
	ErrBudget = errors.New("the call ran too long")
	// ErrClosed is returned once the engine is closed.
	ErrClosed = errors.New("script engine is closed")
	// ErrStale is the cause when a message, a session or a callback is used after the call it belonged to.
	ErrStale = errors.New("no longer valid here")
)

// Error is an error that left a policy.
type Error struct {
	// Event is the event or function that was called; empty while the policy loads.
	Event string
	// Place is the line that raised it, such as "policy.lua:7"; empty when no Lua code was running.
	Place string
	// Value is the error value as a Go value: mostly a string, or what a policy gave to error.
	Value any
	// Stack is the Lua stack, one line per level.
	Stack string

	text  string
	cause error
}

// Error is the text of the error value, which begins with the place where Lua put it there.
func (e *Error) Error() string { return e.text }

// Unwrap gives the Go error behind it, such as an *mta.Rejection or what a bound function returned; nil when there is
// none.
func (e *Error) Unwrap() error { return e.cause }

// thrown is the panic value of errors raised here. The error value lies on top of the Lua stack.
type thrown struct{}

func (thrown) Error() string { return "lua error" }

// abort is the panic value of errors that Lua code cannot catch (LU5).
type abort struct{ cause error }

func (a *abort) Error() string { return a.cause.Error() }
func (a *abort) Unwrap() error { return a.cause }

// bug is a panic of Go code that was caught on the way.
type bug struct {
	value any
	stack []byte
}

func (b *bug) Error() string { return fmt.Sprintf("panic in a bound function: %v", b.value) }

// maxCauses is how many Go errors of one call are remembered for [Error.Unwrap].
const maxCauses = 16

// cause is a Go error whose text became a Lua string.
type cause struct {
	text string
	err  error
}

// raise throws the value on top of the stack. It never returns; the int is for tail calls.
func (vm *vm) raise() int { panic(thrown{}) }

// raisef throws a string with the line of the caller in front.
func (vm *vm) raisef(format string, args ...any) int {
	return vm.raiseText(vm.where(1) + fmt.Sprintf(format, args...))
}

func (vm *vm) raiseText(text string) int {
	vm.room(1)
	vm.l.PushString(text)
	return vm.raise()
}

// raiseError throws a Go error: objects for types that are declared (rejections), strings otherwise.
func (vm *vm) raiseError(err error) int {
	var a *abort
	if errors.As(err, &a) {
		panic(a)
	}
	if r, ok := asRejection(err); ok {
		vm.room(2)
		vm.pushRef(vm.eng.types.rejection, r)
		return vm.raise()
	}
	text := err.Error()
	if _, inner := err.(*Error); !inner { // what came out of Lua has its place
		text = vm.where(1) + text
	}
	vm.remember(text, err)
	return vm.raiseText(text)
}

func (vm *vm) remember(text string, err error) {
	if len(vm.causes) == maxCauses {
		copy(vm.causes, vm.causes[1:])
		vm.causes = vm.causes[:maxCauses-1]
	}
	vm.causes = append(vm.causes, cause{text, err})
}

// causeOf finds the Go error whose text ends s: error() and string operations put places in front.
func (vm *vm) causeOf(s string) error {
	for i := len(vm.causes) - 1; i >= 0; i-- {
		if strings.HasSuffix(s, vm.causes[i].text) {
			return vm.causes[i].err
		}
	}
	return nil
}

// where is "file:line: " of the function at level, or "".
func (vm *vm) where(level int) string {
	if p := vm.placeAt(level); p != "" {
		return p + ": "
	}
	return ""
}

// placeAt is "file:line" of the function at level, or "". Level 0 is the running function.
func (vm *vm) placeAt(level int) string {
	d, ok := vm.frame(level)
	if !ok || d.CurrentLine <= 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d", d.ShortSource, d.CurrentLine)
}

// frame describes the function at level.
func (vm *vm) frame(level int) (d lua.Debug, ok bool) {
	f, ok := lua.Stack(vm.l, level)
	if !ok {
		return d, false
	}
	defer func() {
		if recover() != nil { // right after a jump to its beginning a function has no line: the VM indexes by -1
			d, _ = lua.Info(vm.l, "S", f)
			d.CurrentLine = d.LineDefined
		}
	}()
	d, _ = lua.Info(vm.l, "Sl", f)
	return d, true
}

// luaPlace is the innermost Lua line.
func (vm *vm) luaPlace() string {
	for level := range maxTrace {
		d, ok := vm.frame(level)
		if !ok {
			return ""
		}
		if d.CurrentLine > 0 {
			return fmt.Sprintf("%s:%d", d.ShortSource, d.CurrentLine)
		}
	}
	return ""
}

// maxTrace is how many levels a stack text holds.
const maxTrace = 30

// stackText describes the running functions, innermost first. Names of Go functions are not looked up.
func (vm *vm) stackText() string {
	var b strings.Builder
	for level := 0; level < maxTrace; level++ {
		d, ok := vm.frame(level)
		if !ok {
			return b.String()
		}
		if d.What == "Go" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:%d: in ", d.ShortSource, d.CurrentLine)
		if d.What == "main" {
			b.WriteString("main chunk")
		} else {
			fmt.Fprintf(&b, "function <%s:%d>", d.ShortSource, d.LineDefined)
		}
	}
	b.WriteString("\n...")
	return b.String()
}

// capture notes place and stack of an error while the Lua frames stand.
func (vm *vm) capture() {
	defer func() {
		if r := recover(); r != nil { // the VM cannot describe its frames
			vm.place, vm.trace = "", ""
		}
	}()
	vm.place = vm.luaPlace()
	vm.trace = vm.stackText()
}

// takeError makes the error of a failed protected call and removes the error value from the stack.
func (vm *vm) takeError(name string, err error) error {
	e := &Error{Event: name, Place: vm.place, Stack: vm.trace}
	vm.place, vm.trace = "", ""
	var a *abort
	var b *bug
	switch {
	case errors.As(err, &a):
		e.cause = a.cause
		e.text = a.cause.Error()
		if e.Place != "" {
			e.text = e.Place + ": " + e.text
		}
		e.Value = e.text
	case errors.As(err, &b):
		vm.eng.cfg.Log.Error("panic in a bound function", "event", name, "place", e.Place,
			"panic", fmt.Sprint(b.value), "stack", string(b.stack))
		e.cause, e.text = b, b.Error()
		if e.Place != "" {
			e.text = e.Place + ": " + e.text
		}
		e.Value = e.text
	default:
		vm.describe(e)
	}
	return e
}

// describe fills e from the error value on top of the stack.
func (vm *vm) describe(e *Error) {
	l := vm.l
	switch {
	case l.Top() == 0:
		e.text = "unknown error"
	case l.TypeOf(-1) == lua.TypeString:
		e.text, _ = l.ToString(-1)
		e.Value = e.text
		e.cause = vm.causeOf(e.text)
	default:
		v, err := vm.toAny(l.AbsIndex(-1))
		if err != nil {
			v = nil
		}
		e.Value = v
		e.cause, _ = v.(error)
		e.text = vm.safeText(l.AbsIndex(-1))
		if e.cause == nil && e.Place != "" {
			e.text = e.Place + ": " + e.text
		}
	}
}

// safeText is tostring of the value at idx; a faulty __tostring cannot hurt.
func (vm *vm) safeText(idx int) string {
	l := vm.l
	top := l.Top()
	defer l.SetTop(top)
	vm.room(3)
	l.PushGoFunction(func(l *lua.State) int {
		l.PushString(vm.tostring(1))
		return 1
	})
	l.PushValue(idx)
	if l.ProtectedCall(1, 1, 0) != nil {
		return "error object that has no text"
	}
	s, _ := l.ToString(-1)
	return s
}

// guard turns a panic of Go code into one that the VM can carry. It is deferred around everything that is not Lua.
// The panics of the VM and of this package pass.
func (vm *vm) guard() {
	r := recover()
	if r == nil {
		return
	}
	panic(asLuaPanic(r))
}

// asLuaPanic keeps what the VM knows how to carry and wraps everything else with its stack.
func asLuaPanic(r any) error {
	switch e := r.(type) {
	case thrown:
		return e
	case *abort:
		return e
	case *bug:
		return e
	case lua.RuntimeError:
		return e
	case error:
		if e == lua.ErrorError || e == lua.MemoryError || e == lua.SyntaxError {
			return e
		}
	}
	return &bug{value: r, stack: debug.Stack()}
}

// fatal reports whether Lua code may not catch err: budget, cancelled context, a bug in Go code.
func fatal(err error) bool {
	var a *abort
	var b *bug
	return errors.As(err, &a) || errors.As(err, &b)
}

func abortFor(ctx context.Context) *abort {
	return &abort{fmt.Errorf("the call was stopped: %w", context.Cause(ctx))}
}
