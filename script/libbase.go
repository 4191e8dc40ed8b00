package script

import (
	"fmt"
	"io"
	"strings"

	lua "github.com/Shopify/go-lua"
)

// openBase replaces what the VM has wrong in the basic library: error values that are no strings, xpcall, numbers as
// text, load of binary chunks.
func (vm *vm) openBase() {
	l := vm.l
	l.PushGlobalTable()
	vm.functions(map[string]lua.Function{
		"error":          vm.luaError,
		"assert":         vm.luaAssert,
		"pcall":          vm.luaPcall,
		"xpcall":         vm.luaXpcall,
		"tostring":       vm.luaTostring,
		"print":          vm.luaPrint,
		"pairs":          vm.luaPairs,
		"next":           vm.luaNext,
		"load":           vm.luaLoad,
		"select":         vm.luaSelect,
		"collectgarbage": vm.luaCollect,
		"loadfile":       func(*lua.State) int { return vm.raisef("loadfile is not served yet: use require") },
		"dofile":         func(*lua.State) int { return vm.raisef("dofile is not served yet: use require") },
	})
	l.Pop(1)
}

// luaError is error(value, level): any value, strings with the place of level in front.
func (vm *vm) luaError(l *lua.State) int {
	level := lua.OptInteger(l, 2, 1)
	l.SetTop(1)
	if l.TypeOf(1) == lua.TypeString && level > 0 {
		if p := vm.where(level); p != "" {
			s, _ := l.ToString(1)
			l.PushString(p + s)
		}
	}
	return vm.raise()
}

// luaAssert is assert(v, message...): the message is raised as it is.
func (vm *vm) luaAssert(l *lua.State) int {
	lua.CheckAny(l, 1)
	if l.ToBoolean(1) {
		return l.Top()
	}
	if l.Top() < 2 {
		l.PushString("assertion failed!")
	}
	l.SetTop(2)
	return vm.raise()
}

// luaPcall is pcall(f, ...). What ends a call cannot be caught (LU5).
func (vm *vm) luaPcall(l *lua.State) int {
	lua.CheckAny(l, 1)
	err := l.ProtectedCall(l.Top()-1, lua.MultipleReturns, 0)
	return vm.finishProtected(err)
}

// finishProtected puts the status in front of the results or of the error value.
func (vm *vm) finishProtected(err error) int {
	l := vm.l
	if err != nil {
		err = asLuaPanic(err)
		if fatal(err) {
			panic(err)
		}
		vm.explainMiss(err)
	}
	vm.room(2)
	l.PushBoolean(err == nil)
	l.Insert(1)
	return l.Top()
}

// luaXpcall is xpcall(f, handler, ...): the handler runs while the frames of the error stand.
func (vm *vm) luaXpcall(l *lua.State) int {
	n := l.Top()
	if n < 2 {
		return vm.raisef("bad argument #2 to 'xpcall' (value expected)")
	}
	handler := l.ToValue(2)
	if !l.IsFunction(2) {
		return vm.raisef("bad argument #2 to 'xpcall' (function expected, got %s)", vm.typeName(2))
	}
	l.Remove(2)
	l.PushGoFunction(func(l *lua.State) int {
		defer vm.handleError(handler)
		l.Call(l.Top()-1, lua.MultipleReturns)
		return l.Top()
	})
	l.Insert(1)
	return vm.finishProtected(l.ProtectedCall(n-1, lua.MultipleReturns, 0))
}

// handleError is deferred by xpcall: it replaces the error value by what the handler makes of it.
func (vm *vm) handleError(handler any) {
	r := recover()
	if r == nil {
		return
	}
	err := asLuaPanic(r)
	if fatal(err) {
		panic(err)
	}
	l := vm.l
	vm.room(3)
	vm.explainMiss(err)
	if err == lua.ErrorError { // the value was not put on the stack
		l.PushString("error in error handling")
	}
	l.PushLightUserData(handler)
	l.PushValue(-2)
	if herr := l.ProtectedCall(1, 1, 0); herr != nil {
		if herr = asLuaPanic(herr); fatal(herr) {
			panic(herr)
		}
		l.PushString("error in error handling")
	}
	panic(thrown{})
}

func (vm *vm) luaTostring(l *lua.State) int {
	lua.CheckAny(l, 1)
	l.PushString(vm.tostring(1))
	return 1
}

// tostring is the text of the value at idx, by its __tostring if it has one.
func (vm *vm) tostring(idx int) string {
	l := vm.l
	idx = l.AbsIndex(idx)
	vm.room(4)
	if lua.CallMeta(l, idx, "__tostring") {
		s, ok := vm.stringAt(-1)
		if !ok {
			vm.raisef("'__tostring' must return a string")
		}
		l.Pop(1)
		return s
	}
	switch l.TypeOf(idx) {
	case lua.TypeNil:
		return "nil"
	case lua.TypeBoolean:
		if l.ToBoolean(idx) {
			return "true"
		}
		return "false"
	case lua.TypeNumber, lua.TypeString:
		s, _ := vm.stringAt(idx)
		return s
	}
	if v := l.ToValue(idx); v != nil && l.TypeOf(idx) != lua.TypeUserData {
		return fmt.Sprintf("%s: %p", l.TypeOf(idx), v)
	}
	return l.TypeOf(idx).String()
}

func (vm *vm) luaPrint(l *lua.State) int {
	var b strings.Builder
	for i := 1; i <= l.Top(); i++ {
		if i > 1 {
			b.WriteByte('\t')
		}
		b.WriteString(vm.tostring(i))
	}
	b.WriteByte('\n')
	_, _ = io.WriteString(vm.eng.output(), b.String()) // print has no way to report
	return 0
}

// luaLoad is load(chunk, name, mode, env) for text. Binary chunks could break the VM and are refused.
func (vm *vm) luaLoad(l *lua.State) int {
	text, ok := vm.stringAt(1)
	if !ok {
		if text, ok = vm.readPieces(); !ok {
			return vm.raisef("bad argument #1 to 'load' (string or function expected, got %s)", vm.typeName(1))
		}
	}
	name, named := vm.stringAt(2)
	if !named || name == "" {
		name = "=(load)"
		if l.TypeOf(1) == lua.TypeString && text != "" {
			name = text
		}
	}
	env := l.Top() >= 4
	if env {
		l.PushValue(4)
	}
	if strings.HasPrefix(text, lua.Signature) {
		l.PushNil()
		l.PushString("attempt to load a binary chunk")
		return 2
	}
	if err := l.Load(strings.NewReader(text), name, "t"); err != nil {
		l.PushNil()
		l.Insert(-2)
		return 2
	}
	if env {
		l.PushValue(-2)
		if _, ok := lua.SetUpValue(l, -2, 1); !ok {
			l.Pop(1)
		}
	}
	return 1
}

// readPieces calls the function at 1 until it returns nil or "".
func (vm *vm) readPieces() (string, bool) {
	l := vm.l
	if !l.IsFunction(1) {
		return "", false
	}
	var b strings.Builder
	for {
		vm.room(2)
		l.PushValue(1)
		l.Call(0, 1)
		s, ok := vm.stringAt(-1)
		if !ok && !l.IsNil(-1) {
			vm.raisef("reader function must return a string")
		}
		l.Pop(1)
		if s == "" {
			return b.String(), true
		}
		if b.Len()+len(s) > maxPolicySize {
			vm.raisef("chunk is over %d bytes", maxPolicySize)
		}
		b.WriteString(s)
	}
}

// luaSelect is select(n, ...); the VM counts negative numbers wrongly.
func (vm *vm) luaSelect(l *lua.State) int {
	n := l.Top() - 1
	if s, ok := l.ToValue(1).(string); ok && s == "#" {
		l.PushInteger(n)
		return 1
	}
	i := lua.CheckInteger(l, 1)
	switch {
	case i < 0:
		i = n + i + 1
	case i > n:
		return 0
	}
	if i < 1 {
		return vm.raisef("bad argument #1 to 'select' (index out of range)")
	}
	return n - i + 1
}

// luaCollect is collectgarbage: memory belongs to Go, so there is nothing to steer.
func (vm *vm) luaCollect(l *lua.State) int {
	switch opt := lua.OptString(l, 1, "collect"); opt {
	case "count":
		l.PushNumber(heapKB())
	case "isrunning":
		l.PushBoolean(true)
	case "collect", "step", "stop", "restart", "setpause", "setstepmul", "incremental", "generational":
		l.PushNumber(0)
	default:
		return vm.raisef("bad argument #1 to 'collectgarbage' (invalid option '%s')", clip(opt))
	}
	return 1
}
