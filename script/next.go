package script

import (
	"reflect"
	"unsafe"

	lua "github.com/Shopify/go-lua"
)

// QUIRK: next of the VM looks for its key from the beginning of the list of keys every time, and fails when the entry of
// that key was removed, which Lua allows. The next that policies get remembers where its walks stand. The VM keeps the
// list of keys in the table until a key is added; it is read through memory, after the layout was found to be the one
// known here. Otherwise next is that of the VM.

// tableParts is where a table has its array and its list of keys.
type tableParts struct{ array, keys uintptr }

// findTableParts checks the layout of the VM's tables; nil when it is another one.
func findTableParts() *tableParts {
	l := lua.NewState()
	l.NewTable()
	t := reflect.TypeOf(l.ToValue(-1))
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil
	}
	array, ok1 := t.Elem().FieldByName("array")
	keys, ok2 := t.Elem().FieldByName("iterationKeys")
	if !ok1 || !ok2 || !isValueList(array.Type) || !isValueList(keys.Type) {
		return nil
	}
	return &tableParts{array.Offset, keys.Offset}
}

// isValueList reports whether t is a list of empty interfaces, under whatever name.
func isValueList(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Interface && t.Elem().NumMethod() == 0
}

func part(table any, offset uintptr) []any {
	return *(*[]any)(unsafe.Add(reflect.ValueOf(table).UnsafePointer(), offset))
}

// cursor is where a walk over the names of a table stands.
type cursor struct {
	table any
	keys  []any // of the VM, in its order; the entries it noticed to be gone are nil
	at    int   // of the key returned last
	key   any   // that key, as ToValue gives it
	used  int   // when, counted in steps of walks
}

// maxCursors is how many walks are remembered, those used last. Others are found again from the beginning.
const maxCursors = 8

// luaNext is next(t, key).
func (vm *vm) luaNext(l *lua.State) int {
	lua.CheckType(l, 1, lua.TypeTable)
	l.SetTop(2)
	parts := vm.eng.tables
	if parts == nil {
		return vm.plainNext()
	}
	table, key := l.ToValue(1), l.ToValue(2)
	keys := part(table, parts.keys)
	if key != nil && keys != nil {
		if c := vm.cursorAt(table, keys, key); c != nil {
			return vm.advance(c)
		}
		if !inArray(key, part(table, parts.array)) && vm.isGone() {
			if c := vm.newCursor(table, keys, 2); c != nil {
				return vm.advance(c)
			}
		}
	}
	n := vm.plainNext()
	if n == 2 && !inArray(l.ToValue(-2), part(table, parts.array)) {
		vm.newCursor(table, part(table, parts.keys), l.Top()-1)
	}
	return n
}

// plainNext is next of the VM, with table and key on the stack.
func (vm *vm) plainNext() int {
	if vm.l.Next(1) {
		return 2
	}
	vm.l.PushNil()
	return 1
}

func inArray(key any, array []any) bool {
	f, ok := key.(float64)
	return ok && f >= 1 && f <= float64(len(array)) && f == float64(int(f))
}

// isGone reports whether table 1 has no entry for key 2.
func (vm *vm) isGone() bool {
	vm.l.PushValue(2)
	vm.l.RawGet(1)
	gone := vm.l.IsNil(-1)
	vm.l.Pop(1)
	return gone
}

// cursorAt finds the walk that returned key last, nil when none did since a key was added to the table.
func (vm *vm) cursorAt(table any, keys []any, key any) *cursor {
	for i := range vm.cursors {
		c := &vm.cursors[i]
		if c.table == table && c.key == key && unsafe.SliceData(c.keys) == unsafe.SliceData(keys) {
			return c
		}
	}
	return nil
}

// newCursor makes a walk that stands at the key at idx of the stack, nil when that is not in the list.
func (vm *vm) newCursor(table any, keys []any, idx int) *cursor {
	key := vm.l.ToValue(idx)
	object := vm.l.TypeOf(idx) == lua.TypeUserData
	for at, k := range keys {
		if k == nil || !object && k != key || object && !vm.isObject(k, key) {
			continue
		}
		c := vm.freeCursor()
		vm.steps++
		*c = cursor{table, keys, at, key, vm.steps}
		return c
	}
	return nil
}

// freeCursor is a new cursor, or the one used least recently.
func (vm *vm) freeCursor() *cursor {
	if len(vm.cursors) < maxCursors {
		vm.cursors = append(vm.cursors, cursor{})
		return &vm.cursors[len(vm.cursors)-1]
	}
	oldest := &vm.cursors[0]
	for i := range vm.cursors {
		if c := &vm.cursors[i]; c.used < oldest.used {
			oldest = c
		}
	}
	return oldest
}

// isObject reports whether k, a value of the VM, is the userdata that holds v.
func (vm *vm) isObject(k, v any) bool {
	switch k.(type) {
	case string, float64, bool:
		return false
	}
	vm.room(1)
	vm.l.PushLightUserData(k)
	same := vm.l.TypeOf(-1) == lua.TypeUserData && vm.l.ToUserData(-1) == v
	vm.l.Pop(1)
	return same
}

// advance pushes the next entry of a walk that is still there.
func (vm *vm) advance(c *cursor) int {
	l := vm.l
	l.SetTop(1)
	vm.steps++
	c.used = vm.steps
	for c.at++; c.at < len(c.keys); c.at++ {
		k := c.keys[c.at]
		if k == nil {
			continue
		}
		l.PushLightUserData(k)
		l.PushValue(-1)
		l.RawGet(1)
		if !l.IsNil(-1) {
			c.key = l.ToValue(-2)
			return 2
		}
		l.SetTop(1)
	}
	*c = cursor{}
	l.PushNil()
	return 1
}
