package script

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	lua "github.com/Shopify/go-lua"

	"example.com/svc/mta/settings"
)

// miss is a read of a name that a module does not have. It gives nil, as policies expect that ask whether there is a
// function; what the VM says when the nil is called is explained by it afterwards.
type miss struct {
	mod   *moduleInfo
	name  string
	place string
}

// maxMisses is how many are remembered in one call.
const maxMisses = 8

func (vm *vm) miss(mi *moduleInfo, name string) {
	if len(vm.misses) == maxMisses {
		copy(vm.misses, vm.misses[1:])
		vm.misses = vm.misses[:maxMisses-1]
	}
	vm.misses = append(vm.misses, miss{mi, name, vm.luaPlace()})
}

// nilUses are the beginnings of what the VM says about a nil that should have been something; the rest names a
// variable, often a wrong one.
var nilUses = [...]string{"attempt to call", "attempt to index"}

// explainMiss replaces the text of an error of the VM, which lies on top of the stack, when it is about a name that was
// not found on the same line. It may run while the frames of the error stand.
func (vm *vm) explainMiss(err error) {
	if _, ok := err.(lua.RuntimeError); !ok || len(vm.misses) == 0 {
		return
	}
	l := vm.l
	text, ok := l.ToValue(-1).(string)
	if !ok || !strings.HasSuffix(text, "nil value)") && !strings.HasSuffix(text, "a nil value") {
		return
	}
	for i := len(vm.misses) - 1; i >= 0; i-- {
		m := &vm.misses[i]
		for _, use := range nilUses {
			if m.place == "" || !strings.HasPrefix(text, m.place+": "+use) {
				continue
			}
			cause := vm.eng.missing(m.mod, m.name)
			text = fmt.Sprintf("%s: %s a nil value: %v", m.place, use, cause)
			vm.remember(text, cause)
			l.Pop(1)
			l.PushString(text)
			return
		}
	}
}

// missing says why a module does not have a name.
func (e *Engine) missing(mi *moduleInfo, name string) error {
	if err := e.absentBelow(mi.name + "." + name); err != nil {
		return err
	}
	for _, f := range mi.missing {
		if err := f(name); err != nil {
			return err
		}
	}
	if near := settings.Nearest(name, mi.members(e)); near != "" {
		return fmt.Errorf("%s has no function %q, did you mean %q?", mi.name, clip(name), near)
	}
	return fmt.Errorf("%s has no function %q", mi.name, clip(name))
}

// absentBelow is why the module name, or the first one whose name begins with it and a dot, is not served; nil when
// there is none.
func (e *Engine) absentBelow(name string) error {
	if err := e.absent[name]; err != nil {
		return err
	}
	for _, n := range slices.Sorted(maps.Keys(e.absent)) {
		if strings.HasPrefix(n, name+".") {
			return e.absent[n]
		}
	}
	return nil
}
