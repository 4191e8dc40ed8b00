package script

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	lua "github.com/Shopify/go-lua"

	"example.com/svc/mta/settings"
)

// Bounds of a conversion.
const (
	maxDepth = settings.MaxDepth
	maxNodes = 1 << 20
)

var (
	errCycle = errors.New("table contains itself")
	errDeep  = fmt.Errorf("table is nested over %d levels deep", maxDepth)
	errMany  = fmt.Errorf("table holds over %d entries", maxNodes)
)

// enter notes that the table at idx is being converted, so that cycles and depth are noticed.
func (vm *vm) enter(idx int) (leave func(), err error) {
	t := vm.l.ToValue(idx)
	if len(vm.path) == 0 {
		vm.nodes = 0
	}
	if len(vm.path) >= maxDepth {
		return nil, errDeep
	}
	for _, p := range vm.path {
		if p == t {
			return nil, errCycle
		}
	}
	vm.path = append(vm.path, t)
	return vm.leave, nil
}

func (vm *vm) leave() {
	n := len(vm.path) - 1
	vm.path[n] = nil
	vm.path = vm.path[:n]
}

func (vm *vm) count(n int) error {
	if vm.nodes += n; vm.nodes > maxNodes {
		return errMany
	}
	return nil
}

// toAny converts the value at idx: nil, bool, string, int64 for integral numbers, float64, []any for tables with
// elements 1 to n and nothing else, map[string]any for other tables, *Callback, and the Go value of an object.
func (vm *vm) toAny(idx int) (any, error) {
	l := vm.l
	switch l.TypeOf(idx) {
	case lua.TypeNil, lua.TypeNone:
		return nil, nil
	case lua.TypeBoolean:
		return l.ToBoolean(idx), nil
	case lua.TypeNumber:
		f, _ := l.ToNumber(idx)
		if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
			return int64(f), nil
		}
		return f, nil
	case lua.TypeString:
		return l.ToValue(idx), nil
	case lua.TypeTable:
		return vm.tableToAny(l.AbsIndex(idx))
	case lua.TypeFunction:
		return vm.callback(idx), nil
	case lua.TypeUserData:
		return vm.objectToAny(idx)
	}
	return nil, fmt.Errorf("a %s cannot be converted", vm.typeName(idx))
}

func (vm *vm) objectToAny(idx int) (any, error) {
	r := vm.refAt(idx)
	if r == nil {
		return nil, fmt.Errorf("a %s cannot be converted", vm.typeName(idx))
	}
	if r.v == nil {
		return nil, stale(r.typ)
	}
	return r.v, nil
}

func (vm *vm) tableToAny(idx int) (any, error) {
	leave, err := vm.enter(idx)
	if err != nil {
		return nil, err
	}
	defer leave()
	l := vm.l
	vm.room(3)
	n := l.RawLength(idx)
	if err := vm.count(n); err != nil {
		return nil, err
	}
	m, err := vm.namedEntries(idx, n)
	if err != nil {
		return nil, err
	}
	if n > 0 && m == nil {
		return vm.elements(idx, n)
	}
	if m == nil {
		m = map[string]any{}
	}
	for i := 1; i <= n; i++ { // a table with both kinds of keys
		l.RawGetInt(idx, i)
		v, err := vm.toAny(-1)
		l.Pop(1)
		if err != nil {
			return nil, err
		}
		m[strconv.Itoa(i)] = v
	}
	return m, nil
}

func (vm *vm) elements(idx, n int) ([]any, error) {
	list := make([]any, n)
	for i := range list {
		vm.l.RawGetInt(idx, i+1)
		v, err := vm.toAny(-1)
		vm.l.Pop(1)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i+1, err)
		}
		list[i] = v
	}
	return list, nil
}

// namedEntries converts the entries whose keys are not 1 to n; nil when there are none.
func (vm *vm) namedEntries(idx, n int) (m map[string]any, err error) {
	l := vm.l
	if h := hashPart(l.ToValue(idx)); h.IsValid() && h.Len() > smallTable {
		return vm.manyEntries(idx)
	}
	for l.PushNil(); l.Next(idx); l.Pop(1) {
		if f, ok := vm.numberAt(-2); ok && f == math.Trunc(f) && f >= 1 && f <= float64(n) {
			continue
		}
		if m == nil {
			m = make(map[string]any, 8)
		}
		if err := vm.entry(m); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// manyEntries is namedEntries for large tables.
func (vm *vm) manyEntries(idx int) (map[string]any, error) {
	_, keys := vm.keysOf(idx)
	if len(keys) == 0 {
		return nil, nil
	}
	m := make(map[string]any, len(keys))
	for _, k := range keys {
		vm.pushKey(k)
		vm.l.PushValue(-1)
		vm.l.RawGet(idx)
		if err := vm.entry(m); err != nil {
			return nil, err
		}
		vm.l.Pop(2)
	}
	return m, nil
}

// entry converts the key and value on top of the stack into m and leaves them there.
func (vm *vm) entry(m map[string]any) error {
	key, ok := vm.stringAt(-2)
	if !ok {
		return fmt.Errorf("key is a %s, want a string", vm.typeName(-2))
	}
	if err := vm.count(1); err != nil {
		return err
	}
	v, err := vm.toAny(-1)
	if err != nil {
		return fmt.Errorf("key %q: %w", clip(key), err)
	}
	m[key] = v
	return nil
}

func getMap(vm *vm, idx int) (reflect.Value, error) {
	if !vm.l.IsTable(idx) {
		return reflect.Value{}, mismatch(vm, "table", idx)
	}
	v, err := vm.tableToAny(vm.l.AbsIndex(idx))
	if err != nil {
		return reflect.Value{}, err
	}
	if list, ok := v.([]any); ok {
		m := make(map[string]any, len(list))
		for i, e := range list {
			m[strconv.Itoa(i+1)] = e
		}
		v = m
	}
	return reflect.ValueOf(v), nil
}

func getList(vm *vm, idx int) (reflect.Value, error) {
	if !vm.l.IsTable(idx) {
		return reflect.Value{}, mismatch(vm, "list", idx)
	}
	v, err := vm.tableToAny(vm.l.AbsIndex(idx))
	if err != nil {
		return reflect.Value{}, err
	}
	switch v := v.(type) {
	case []any:
		return reflect.ValueOf(v), nil
	case map[string]any:
		if len(v) == 0 {
			return reflect.ValueOf([]any{}), nil
		}
	}
	return reflect.Value{}, errors.New("list expected, got a table with names")
}

// typeName is what Lua calls the value at idx; objects have the name of their type.
func (vm *vm) typeName(idx int) string {
	if r := vm.refAt(idx); r != nil {
		return r.typ.name
	}
	if vm.l.TypeOf(idx) == lua.TypeNone {
		return "no value"
	}
	return vm.l.TypeOf(idx).String()
}

// numberText is tostring of a number: no ".0" on integers, inf and nan as in C.
func numberText(f float64) string {
	switch {
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.FormatInt(int64(f), 10)
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	return fmt.Sprintf("%.14g", f)
}

// clip bounds foreign text in error messages.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "..."
	}
	return s
}

func lowerName(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Name() == "" {
		return t.String()
	}
	return strings.ToLower(t.Name())
}
