package script

import (
	"math"

	lua "github.com/Shopify/go-lua"
)

// openLibraries opens the standard library: what the VM has right, replacements for what it has wrong, and clear errors
// for what is not served.
func (vm *vm) openLibraries() {
	l := vm.l
	for _, lib := range []struct {
		name string
		open lua.Function
	}{
		{"_G", lua.BaseOpen}, {"table", lua.TableOpen}, {"string", lua.StringOpen}, {"math", lua.MathOpen},
		{"bit32", lua.Bit32Open}, {"os", lua.OSOpen},
	} {
		lua.Require(l, lib.name, lib.open, true)
		l.Pop(1)
	}
	vm.openPackage()
	vm.openBase()
	vm.openString()
	vm.openTable()
	vm.openOS()
	vm.openIO()
	vm.openMath()
	vm.notServed("coroutine", "create", "isyieldable", "resume", "running", "status", "wrap", "yield")
	vm.notServed("utf8", "char", "codepoint", "codes", "len", "offset")
	l.PushNil()
	l.SetGlobal("debug")
	vm.listLoaded()
}

// listLoaded puts the libraries into package.loaded.
func (vm *vm) listLoaded() {
	l := vm.l
	l.RawGetInt(lua.RegistryIndex, slotLoaded)
	l.PushGlobalTable()
	l.SetField(-2, "_G")
	for _, name := range []string{"table", "string", "math", "bit32", "os", "io", "coroutine", "utf8", "package"} {
		l.Global(name)
		l.SetField(-2, name)
	}
	l.Pop(1)
}

// functions sets fields of the table on top of the stack.
func (vm *vm) functions(fs map[string]lua.Function) {
	for name, f := range fs {
		vm.l.PushGoFunction(f)
		vm.l.SetField(-2, name)
	}
}

// extend sets fields of a global table and removes others.
func (vm *vm) extend(table string, fs map[string]lua.Function, removed ...string) {
	l := vm.l
	l.Global(table)
	vm.functions(fs)
	for _, name := range removed {
		l.PushNil()
		l.SetField(-2, name)
	}
	l.Pop(1)
}

// notServed makes a library whose functions say that they are missing.
func (vm *vm) notServed(table string, names ...string) {
	l := vm.l
	l.NewTable()
	for _, name := range names {
		full := table + "." + name
		l.PushGoFunction(func(*lua.State) int { return vm.raisef("%s is not served yet", full) })
		l.SetField(-2, name)
	}
	l.SetGlobal(table)
}

func (vm *vm) openMath() {
	l := vm.l
	l.Global("math")
	l.PushNumber(math.Inf(1))
	l.SetField(-2, "huge")
	vm.functions(map[string]lua.Function{
		"tointeger": func(l *lua.State) int {
			if f, ok := vm.numberAt(1); ok && f == math.Trunc(f) && !math.IsInf(f, 0) {
				l.PushNumber(f)
			} else {
				l.PushNil()
			}
			return 1
		},
		"type": func(l *lua.State) int {
			f, ok := vm.numberAt(1)
			switch {
			case !ok:
				lua.CheckAny(l, 1)
				l.PushNil()
			case f == math.Trunc(f) && !math.IsInf(f, 0):
				l.PushString("integer")
			default:
				l.PushString("float")
			}
			return 1
		},
	})
	l.Pop(1)
}

// openTable adds table.unpack under its old name, and bounds table.concat, which the VM does in quadratic time.
func (vm *vm) openTable() {
	l := vm.l
	l.Global("table")
	l.Field(-1, "unpack")
	l.SetGlobal("unpack")
	vm.functions(map[string]lua.Function{"concat": vm.tableConcat})
	l.Pop(1)
}

func (vm *vm) tableConcat(l *lua.State) int {
	lua.CheckType(l, 1, lua.TypeTable)
	sep := lua.OptString(l, 2, "")
	i := lua.OptInteger(l, 3, 1)
	last := 0
	if l.IsNoneOrNil(4) {
		last = lua.LengthEx(l, 1)
	} else {
		last = lua.CheckInteger(l, 4)
	}
	var b []byte
	for ; i <= last; i++ {
		l.RawGetInt(1, i)
		s, ok := vm.stringAt(-1)
		if !ok {
			return vm.raisef("invalid value (%s) at index %d in table for 'concat'", vm.typeName(-1), i)
		}
		l.Pop(1)
		b = append(b, s...)
		if i < last {
			b = append(b, sep...)
		}
		if len(b) > maxString {
			return vm.raisef("resulting string too large")
		}
	}
	l.PushString(string(b))
	return 1
}
