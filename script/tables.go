package script

import (
	"reflect"

	lua "github.com/Shopify/go-lua"
)

// QUIRK: next of the VM looks for its key from the beginning every time, so that a walk over n names costs n*n steps,
// and it fails when the current entry was removed, which Lua allows. pairs therefore walks over a list of the keys made
// when it is called, read from the hash part by reflection when all keys are plain.

// smallTable is up to how many names the VM's own walk is as good.
const smallTable = 16

// hashPart is the hash part of the table v, not valid when the VM has another layout.
func hashPart(v any) reflect.Value {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	h := rv.Elem().FieldByName("hash")
	if h.Kind() != reflect.Map {
		return reflect.Value{}
	}
	return h
}

// plainKeys lists the keys of the hash part h; ok is false when one of them is neither string nor number nor boolean.
func plainKeys(h reflect.Value) (keys []any, ok bool) {
	keys = make([]any, 0, h.Len())
	for it := h.MapRange(); it.Next(); {
		k := it.Key()
		if k.Kind() == reflect.Interface {
			k = k.Elem()
		}
		switch k.Kind() {
		case reflect.String:
			keys = append(keys, k.String())
		case reflect.Float64:
			keys = append(keys, k.Float())
		case reflect.Bool:
			keys = append(keys, k.Bool())
		default:
			return nil, false
		}
	}
	return keys, true
}

// keysOf lists the keys of the table at idx: those of the array part up to its length first.
func (vm *vm) keysOf(idx int) (array int, keys []any) {
	l := vm.l
	array = l.RawLength(idx)
	if h := hashPart(l.ToValue(idx)); h.IsValid() && h.Len() > smallTable {
		if keys, ok := plainKeys(h); ok {
			return array, vm.listed(idx, array, keys)
		}
	}
	vm.room(3)
	l.PushNil()
	for l.Next(idx) {
		if f, ok := vm.numberAt(-2); !ok || f != float64(int(f)) || f < 1 || f > float64(array) {
			keys = append(keys, vm.keyValue(-2))
		}
		l.Pop(1)
	}
	return array, keys
}

// listed adds what lies in the array part behind its border, which the hash part does not list, and leaves out
// numbers that the border covers.
func (vm *vm) listed(idx, array int, keys []any) []any {
	kept := keys[:0]
	for _, k := range keys {
		if f, ok := k.(float64); ok && f == float64(int(f)) && f >= 1 && f <= float64(array) {
			continue
		}
		kept = append(kept, k)
	}
	part := reflect.ValueOf(vm.l.ToValue(idx)).Elem().FieldByName("array")
	if part.Kind() == reflect.Slice {
		for i := array; i < part.Len(); i++ {
			if !part.Index(i).IsNil() {
				kept = append(kept, float64(i+1))
			}
		}
	}
	return kept
}

// keyValue is the key at idx as something that PushLightUserData pushes again as the same Lua value. Objects as keys
// are kept in their Lua form.
func (vm *vm) keyValue(idx int) any {
	if vm.l.TypeOf(idx) == lua.TypeUserData {
		return vm.holdValue(idx)
	}
	return vm.l.ToValue(idx)
}

// holdValue keeps the object at idx as the upvalue of a function, since its Lua form cannot be read from outside.
func (vm *vm) holdValue(idx int) any {
	l := vm.l
	l.PushValue(idx)
	l.PushGoClosure(func(*lua.State) int { return 0 }, 1)
	f := l.ToValue(-1)
	l.Pop(1)
	return &heldKey{closure: f}
}

// heldKey is a Go closure with the object as its upvalue.
type heldKey struct{ closure any }

func (vm *vm) pushKey(k any) {
	h, ok := k.(*heldKey)
	if !ok {
		vm.l.PushLightUserData(k)
		return
	}
	vm.l.PushLightUserData(h.closure)
	lua.UpValue(vm.l, -1, 1)
	vm.l.Remove(-2)
}

// luaPairs is pairs(t).
func (vm *vm) luaPairs(l *lua.State) int {
	lua.CheckAny(l, 1)
	if lua.MetaField(l, 1, "__pairs") {
		l.PushValue(1)
		l.Call(1, 3)
		return 3
	}
	lua.CheckType(l, 1, lua.TypeTable)
	l.SetTop(1)
	return vm.rawPairs(l)
}

// rawPairs makes the iterator over the table that is alone on the stack.
func (vm *vm) rawPairs(l *lua.State) int {
	array, keys := vm.keysOf(1)
	at := 0
	l.PushGoFunction(func(l *lua.State) int {
		l.SetTop(1)
		lua.CheckType(l, 1, lua.TypeTable)
		for at < array+len(keys) {
			at++
			if at <= array {
				l.PushInteger(at)
				l.RawGetInt(1, at)
			} else {
				vm.pushKey(keys[at-array-1])
				l.PushValue(-1)
				l.RawGet(1)
			}
			if !l.IsNil(-1) {
				return 2
			}
			l.SetTop(1)
		}
		l.PushNil()
		return 1
	})
	l.Insert(1)
	l.PushNil()
	return 3
}
