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
	array int   // length of the array part then: what lies there is not returned again, and a longer one ends the walk
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
	array, keys := part(table, parts.array), part(table, parts.keys)
	if key != nil && keys != nil {
		if c := vm.cursorAt(table, len(array), keys, key); c != nil {
			return vm.advance(c)
		}
	}
	first := 0
	switch {
	case inArray(key, len(array)):
		first = int(key.(float64))
	case key != nil:
		return vm.nextAfter(table, keys)
	}
	for i := first; i < len(array); i++ {
		if array[i] != nil {
			l.SetTop(1)
			l.PushInteger(i + 1)
			l.PushLightUserData(array[i])
			return 2
		}
	}
	if keys == nil {
		return vm.firstName(table, len(array))
	}
	return vm.advance(vm.newCursor(table, keys, -1, nil))
}

// nextAfter continues a walk that is not remembered behind its key, which lies on the stack.
func (vm *vm) nextAfter(table any, keys []any) int {
	if c := vm.cursorFor(table, keys); c != nil {
		return vm.advance(c)
	}
	return vm.freshNext(table)
}

// firstName begins a walk over the names of a table that has no list of keys yet: the VM makes one.
func (vm *vm) firstName(table any, array int) int {
	vm.l.SetTop(1)
	if array > 0 {
		vm.l.PushInteger(array)
	} else {
		vm.l.PushNil()
	}
	return vm.freshNext(table)
}

// freshNext is next of the VM, whose walk is remembered.
func (vm *vm) freshNext(table any) int {
	n := vm.plainNext()
	if n == 2 {
		vm.cursorFor(table, part(table, vm.eng.tables.keys))
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

func inArray(key any, length int) bool {
	f, ok := key.(float64)
	return ok && f >= 1 && f <= float64(length) && f == float64(int(f))
}

// cursorAt finds a walk that returned key last, nil when none did since the table got a key.
func (vm *vm) cursorAt(table any, array int, keys []any, key any) *cursor {
	for i := range vm.cursors {
		c := &vm.cursors[i]
		if c.table == table && c.key == key && c.array == array && unsafe.SliceData(c.keys) == unsafe.SliceData(keys) {
			return c
		}
	}
	return nil
}

// cursorFor makes a walk that stands at the key at 2 of the stack, nil when that is not in the list.
func (vm *vm) cursorFor(table any, keys []any) *cursor {
	key := vm.l.ToValue(2)
	object := vm.l.TypeOf(2) == lua.TypeUserData
	for at, k := range keys {
		if k != nil && (k == key || object && vm.isObject(k, key)) {
			return vm.newCursor(table, keys, at, key)
		}
	}
	return nil
}

// newCursor makes a walk.
func (vm *vm) newCursor(table any, keys []any, at int, key any) *cursor {
	c := vm.freeCursor()
	vm.steps++
	*c = cursor{table, keys, at, key, len(part(table, vm.eng.tables.array)), vm.steps}
	return c
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
		if k == nil || inArray(k, c.array) { // the VM moves keys into the array and leaves them in the list
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
