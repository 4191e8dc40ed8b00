package script

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	lua "github.com/Shopify/go-lua"

	"example.com/svc/mta/settings"
)

// conv turns a Lua value into a Go value of one type. It is made once per engine.
type conv struct {
	want     string // "string", "list of addresses": for errors and documents
	get      func(vm *vm, idx int) (reflect.Value, error)
	optional bool // a pointer to a plain value: nil when not given
	takesNil bool // nil is a value of the type
	absent   func() (reflect.Value, error)
}

// compiler makes converters for the types of one engine.
type compiler struct {
	types   *typeSet
	convs   map[convKey]*conv
	pushers map[reflect.Type]*lazyPusher
}

type convKey struct {
	t    reflect.Type
	what string
}

var (
	anyType         = reflect.TypeFor[any]()
	durationType    = reflect.TypeFor[time.Duration]()
	bytesType       = reflect.TypeFor[[]byte]()
	mapType         = reflect.TypeFor[map[string]any]()
	listType        = reflect.TypeFor[[]any]()
	callbackType    = reflect.TypeFor[*Callback]()
	callbackValue   = reflect.TypeFor[Callback]()
	textReaderType  = reflect.TypeFor[encoding.TextUnmarshaler]()
	settingReader   = reflect.TypeFor[settings.Unmarshaler]()
	enumType        = reflect.TypeFor[settings.Enum]()
	errBadNumber    = errors.New("number has no integer representation")
	errNumberRange  = errors.New("number is out of range")
	errUndeclaredIn = errors.New("the type is not declared and cannot be converted")
)

// conv returns the converter to t. what names the function for errors of settings.
func (c *compiler) conv(t reflect.Type, what string) (*conv, error) {
	key := convKey{t, what}
	if cv := c.convs[key]; cv != nil {
		return cv, nil
	}
	cv := &conv{}
	c.convs[key] = cv // types that contain themselves
	if err := c.fill(cv, t, what); err != nil {
		delete(c.convs, key)
		return nil, err
	}
	return cv, nil
}

func (c *compiler) fill(cv *conv, t reflect.Type, what string) error {
	switch {
	case t == anyType:
		cv.want, cv.takesNil, cv.get = "any", true, getAny
	case t == callbackType || t == callbackValue:
		cv.want, cv.get = "function", getCallback(t)
	case t == bytesType:
		cv.want, cv.get = "string", getBytes
	case t == durationType:
		cv.want, cv.get = "duration", getDuration
	case c.types.find(t) != nil && !c.types.find(t).setting:
		c.fillDeclared(cv, t)
	case isSettings(t) || t.Kind() == reflect.Pointer && isSettings(t.Elem()):
		c.fillSettings(cv, t, what)
	case reflect.PointerTo(t).Implements(settingReader):
		cv.want, cv.get = typeWord(t), getSetting(t)
	case reflect.PointerTo(t).Implements(textReaderType):
		cv.want, cv.get = typeWord(t), getText(t)
	default:
		return c.fillKind(cv, t, what)
	}
	return nil
}

func (c *compiler) fillKind(cv *conv, t reflect.Type, what string) error {
	switch k := t.Kind(); {
	case k == reflect.String:
		cv.want, cv.get = "string", getString(t)
	case k == reflect.Bool:
		cv.want, cv.get = "boolean", getBool(t)
	case k >= reflect.Int && k <= reflect.Int64:
		cv.want, cv.get = "integer", getInt(t)
	case k >= reflect.Uint && k <= reflect.Uint64:
		cv.want, cv.get = "integer", getUint(t)
	case k == reflect.Float64 || k == reflect.Float32:
		cv.want, cv.get = "number", getFloat(t)
	case t == mapType:
		cv.want, cv.get = "table", getMap
	case t == listType:
		cv.want, cv.get = "list", getList
	case k == reflect.Slice:
		return c.fillSlice(cv, t, what)
	case k == reflect.Map && t.Key().Kind() == reflect.String:
		return c.fillMap(cv, t, what)
	case k == reflect.Pointer && t.Elem().Kind() != reflect.Pointer:
		return c.fillPointer(cv, t, what)
	case k == reflect.Interface:
		cv.want, cv.get = lowerName(t), getObject(t)
	default:
		return fmt.Errorf("%v: %w", t, errUndeclaredIn)
	}
	return nil
}

func mismatch(vm *vm, want string, idx int) error {
	return fmt.Errorf("%s expected, got %s", want, vm.typeName(idx))
}

func getAny(vm *vm, idx int) (reflect.Value, error) {
	v, err := vm.toAny(idx)
	if err != nil {
		return reflect.Value{}, err
	}
	if v == nil {
		return reflect.Zero(anyType), nil
	}
	return reflect.ValueOf(v), nil
}

func getString(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	plain := t == reflect.TypeFor[string]()
	var allowed []string
	if t.Implements(enumType) {
		allowed = reflect.Zero(t).Interface().(settings.Enum).Values()
	}
	return func(vm *vm, idx int) (reflect.Value, error) {
		s, ok := vm.stringAt(idx)
		if !ok {
			return reflect.Value{}, mismatch(vm, "string", idx)
		}
		if plain {
			return reflect.ValueOf(s), nil
		}
		if allowed != nil && !contains(allowed, s) {
			return reflect.Value{}, fmt.Errorf("%q is none of %s", clip(s), strings.Join(allowed, ", "))
		}
		return reflect.ValueOf(s).Convert(t), nil
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

// stringAt is the string or number at idx; unlike ToString it does not change a number in place.
func (vm *vm) stringAt(idx int) (string, bool) {
	switch v := vm.l.ToValue(idx).(type) {
	case string:
		return v, vm.l.TypeOf(idx) == lua.TypeString
	case float64:
		if vm.l.TypeOf(idx) == lua.TypeNumber {
			return numberText(v), true
		}
	}
	return "", false
}

func getBytes(vm *vm, idx int) (reflect.Value, error) {
	s, ok := vm.stringAt(idx)
	if !ok {
		return reflect.Value{}, mismatch(vm, "string", idx)
	}
	return reflect.ValueOf([]byte(s)), nil
}

func getBool(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	return func(vm *vm, idx int) (reflect.Value, error) {
		if !vm.l.IsBoolean(idx) {
			return reflect.Value{}, mismatch(vm, "boolean", idx)
		}
		v := reflect.ValueOf(vm.l.ToBoolean(idx))
		if v.Type() != t {
			v = v.Convert(t)
		}
		return v, nil
	}
}

func (vm *vm) numberAt(idx int) (float64, bool) {
	if vm.l.TypeOf(idx) != lua.TypeNumber {
		return 0, false
	}
	return vm.l.ToNumber(idx)
}

func getInt(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	return func(vm *vm, idx int) (reflect.Value, error) {
		f, ok := vm.numberAt(idx)
		switch {
		case !ok:
			return reflect.Value{}, mismatch(vm, "integer", idx)
		case f != math.Trunc(f) || f < -1<<63 || f >= 1<<63:
			return reflect.Value{}, errBadNumber
		}
		v := reflect.New(t).Elem()
		if v.OverflowInt(int64(f)) {
			return reflect.Value{}, errNumberRange
		}
		v.SetInt(int64(f))
		return v, nil
	}
}

func getUint(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	return func(vm *vm, idx int) (reflect.Value, error) {
		f, ok := vm.numberAt(idx)
		switch {
		case !ok:
			return reflect.Value{}, mismatch(vm, "integer", idx)
		case f != math.Trunc(f):
			return reflect.Value{}, errBadNumber
		case f < 0 || f >= 1<<64:
			return reflect.Value{}, errNumberRange
		}
		v := reflect.New(t).Elem()
		if v.OverflowUint(uint64(f)) {
			return reflect.Value{}, errNumberRange
		}
		v.SetUint(uint64(f))
		return v, nil
	}
}

func getFloat(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	return func(vm *vm, idx int) (reflect.Value, error) {
		f, ok := vm.numberAt(idx)
		if !ok {
			return reflect.Value{}, mismatch(vm, "number", idx)
		}
		return reflect.ValueOf(f).Convert(t), nil
	}
}

func getDuration(vm *vm, idx int) (reflect.Value, error) {
	tree, err := vm.toAny(idx)
	if err != nil {
		return reflect.Value{}, err
	}
	var d settings.Duration
	if err := d.UnmarshalSetting(tree); err != nil {
		return reflect.Value{}, err
	}
	return reflect.ValueOf(d.D()), nil
}

// getSetting reads types that read themselves from any plain value.
func getSetting(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	return func(vm *vm, idx int) (reflect.Value, error) {
		tree, err := vm.toAny(idx)
		if err != nil {
			return reflect.Value{}, err
		}
		v := reflect.New(t)
		if tree != nil && reflect.TypeOf(tree) == t {
			return reflect.ValueOf(tree), nil
		}
		if r := vm.refAt(idx); r != nil {
			if tree, err = vm.settingForm(r); err != nil {
				return reflect.Value{}, err
			}
		}
		if err := v.Interface().(settings.Unmarshaler).UnmarshalSetting(tree); err != nil {
			return reflect.Value{}, err
		}
		return v.Elem(), nil
	}
}

// settingHook is the name of the hook that gives the plain form of an object.
const settingHook = "__setting"

// settingForm is the plain value of an object for types that read themselves: what its hook gives, else the object.
func (vm *vm) settingForm(r *ref) (any, error) {
	b := r.typ.hooks[settingHook]
	if b == nil {
		return r.v, nil
	}
	vm.room(1)
	vm.pushBound(b)
	fn := vm.l.ToValue(-1)
	vm.l.Pop(1)
	out, err := vm.callValue(fn, []any{r.v})
	if err != nil || len(out) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%s has no plain form", r.typ.name))
	}
	return out[0], nil
}

// getText reads types that read themselves from text.
func getText(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	want := typeWord(t)
	return func(vm *vm, idx int) (reflect.Value, error) {
		s, ok := vm.stringAt(idx)
		if !ok {
			return reflect.Value{}, mismatch(vm, want, idx)
		}
		v := reflect.New(t)
		if err := v.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)); err != nil {
			return reflect.Value{}, err
		}
		return v.Elem(), nil
	}
}

// getObject reads declared objects, and functions as [*Callback], that implement an interface.
func getObject(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	want := lowerName(t)
	return func(vm *vm, idx int) (reflect.Value, error) {
		if vm.l.IsFunction(idx) && callbackType.Implements(t) {
			return reflect.ValueOf(vm.callback(idx)), nil
		}
		r := vm.refAt(idx)
		if r == nil {
			return reflect.Value{}, mismatch(vm, want, idx)
		}
		if r.v == nil {
			return reflect.Value{}, stale(r.typ)
		}
		v := reflect.ValueOf(r.v)
		if !v.Type().Implements(t) {
			return reflect.Value{}, mismatch(vm, want, idx)
		}
		return v, nil
	}
}

func getCallback(t reflect.Type) func(*vm, int) (reflect.Value, error) {
	return func(vm *vm, idx int) (reflect.Value, error) {
		if !vm.l.IsFunction(idx) {
			return reflect.Value{}, mismatch(vm, "function", idx)
		}
		cb := vm.callback(idx)
		if t == callbackValue {
			return reflect.ValueOf(*cb), nil
		}
		return reflect.ValueOf(cb), nil
	}
}
