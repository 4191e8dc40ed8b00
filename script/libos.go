package script

import (
	"math"
	rtmetrics "runtime/metrics"
	"time"

	lua "github.com/Shopify/go-lua"
)

// heapKB is the size of the live Go heap in KB.
func heapKB() float64 {
	s := []rtmetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	rtmetrics.Read(s)
	if s[0].Value.Kind() != rtmetrics.KindUint64 {
		return 0
	}
	return float64(s[0].Value.Uint64()) / 1024
}

// openOS replaces os.time and os.getenv, removes what ends or leaves the process, and names what is not served.
func (vm *vm) openOS() {
	vm.extend("os", map[string]lua.Function{
		"time":      vm.osTime,
		"getenv":    vm.osGetenv,
		"difftime":  vm.osDifftime,
		"date":      func(*lua.State) int { return vm.raisef("os.date is not served yet") },
		"setlocale": func(*lua.State) int { return vm.raisef("os.setlocale is not served yet") },
	}, "exit", "execute")
}

// osGetenv is os.getenv(name), by [Config.Getenv]: this package does not look at the environment.
func (vm *vm) osGetenv(l *lua.State) int {
	name := lua.CheckString(l, 1)
	l.PushNil()
	if get := vm.eng.cfg.Getenv; get != nil {
		if s, ok := get(name); ok {
			l.PushString(s)
		}
	}
	return 1
}

func (vm *vm) osDifftime(l *lua.State) int {
	l.PushNumber(lua.CheckNumber(l, 1) - lua.OptNumber(l, 2, 0))
	return 1
}

// osTime is os.time([table]): seconds since 1970, the table in local time.
func (vm *vm) osTime(l *lua.State) int {
	if l.IsNoneOrNil(1) {
		l.PushNumber(float64(time.Now().Unix()))
		return 1
	}
	lua.CheckType(l, 1, lua.TypeTable)
	field := func(name string, def int) int {
		l.Field(1, name)
		defer l.Pop(1)
		f, ok := l.ToNumber(-1)
		switch {
		case ok && f == math.Trunc(f) && math.Abs(f) < 1<<31:
			return int(f)
		case ok:
			vm.raisef("field '%s' is not an integer", name)
		case def < 0:
			vm.raisef("field '%s' missing in date table", name)
		}
		return def
	}
	t := time.Date(field("year", -1), time.Month(field("month", -1)), field("day", -1),
		field("hour", 12), field("min", 0), field("sec", 0), 0, time.Local)
	l.PushNumber(float64(t.Unix()))
	return 1
}
