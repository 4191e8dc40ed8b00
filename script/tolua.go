package script

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"example.com/svc/mta/settings"
)

// pusher pushes a Go value of one type. It is made once per engine.
type pusher func(vm *vm, v reflect.Value) error

// lazyPusher lets types contain themselves.
type lazyPusher struct{ push pusher }

var (
	textWriterType    = reflect.TypeFor[encoding.TextMarshaler]()
	settingsMapType   = reflect.TypeFor[settings.Map]()
	settingWriterType = reflect.TypeFor[settings.Marshaler]()
)

// pusher returns how values of type t are pushed.
func (c *compiler) pusher(t reflect.Type) (pusher, error) {
	if lp := c.pushers[t]; lp != nil {
		return func(vm *vm, v reflect.Value) error { return lp.push(vm, v) }, nil
	}
	lp := &lazyPusher{}
	c.pushers[t] = lp
	p, err := c.makePusher(t)
	if err != nil {
		delete(c.pushers, t)
		return nil, err
	}
	lp.push = p
	return p, nil
}

func (c *compiler) makePusher(t reflect.Type) (pusher, error) {
	if ti := c.types.find(t); ti != nil && !ti.setting {
		return declaredPusher(ti), nil
	}
	switch {
	case t == durationType:
		return func(vm *vm, v reflect.Value) error {
			vm.l.PushNumber(time.Duration(v.Int()).Seconds())
			return nil
		}, nil
	case t == settingsMapType || t == bytesType || t == callbackType:
		return pushDynamic, nil
	case t.Kind() == reflect.Interface:
		return func(vm *vm, v reflect.Value) error {
			if v.IsNil() {
				vm.l.PushNil()
				return nil
			}
			return vm.pushAny(v.Interface(), 0)
		}, nil
	case t.Implements(settingWriterType):
		return func(vm *vm, v reflect.Value) error {
			return vm.pushAny(v.Interface().(settings.Marshaler).MarshalSetting(), 0)
		}, nil
	case t.Implements(textWriterType) && t.Kind() != reflect.Pointer:
		return pushText, nil
	}
	return c.kindPusher(t)
}

// declaredPusher pushes objects; a nil pointer is nil.
func declaredPusher(ti *typeInfo) pusher {
	return func(vm *vm, v reflect.Value) error {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			vm.l.PushNil()
			return nil
		}
		vm.pushRef(ti, v.Interface())
		return nil
	}
}

func pushDynamic(vm *vm, v reflect.Value) error { return vm.pushAny(v.Interface(), 0) }

func pushText(vm *vm, v reflect.Value) error {
	b, err := v.Interface().(encoding.TextMarshaler).MarshalText()
	if err != nil {
		return err
	}
	vm.l.PushString(string(b))
	return nil
}

func (c *compiler) kindPusher(t reflect.Type) (pusher, error) {
	switch k := t.Kind(); {
	case k == reflect.String:
		return func(vm *vm, v reflect.Value) error { vm.l.PushString(v.String()); return nil }, nil
	case k == reflect.Bool:
		return func(vm *vm, v reflect.Value) error { vm.l.PushBoolean(v.Bool()); return nil }, nil
	case k >= reflect.Int && k <= reflect.Int64:
		return func(vm *vm, v reflect.Value) error { vm.l.PushNumber(float64(v.Int())); return nil }, nil
	case k >= reflect.Uint && k <= reflect.Uint64:
		return func(vm *vm, v reflect.Value) error { vm.l.PushNumber(float64(v.Uint())); return nil }, nil
	case k == reflect.Float32 || k == reflect.Float64:
		return func(vm *vm, v reflect.Value) error { vm.l.PushNumber(v.Float()); return nil }, nil
	case k == reflect.Slice:
		return c.slicePusher(t)
	case k == reflect.Map && t.Key().Kind() == reflect.String:
		return c.mapPusher(t)
	case isSettings(t):
		return declaredPusher(c.types.setting(t)), nil
	case k == reflect.Pointer && isSettings(t.Elem()):
		return declaredPusher(c.types.setting(t.Elem())), nil
	case k == reflect.Pointer:
		return c.pointerPusher(t)
	case k == reflect.Func:
		return c.funcPusher(t)
	}
	return nil, fmt.Errorf("%v: the type is not declared and cannot be given to a policy", t)
}

func (c *compiler) pointerPusher(t reflect.Type) (pusher, error) {
	elem, err := c.pusher(t.Elem())
	if err != nil {
		return nil, err
	}
	return func(vm *vm, v reflect.Value) error {
		if v.IsNil() {
			vm.l.PushNil()
			return nil
		}
		return elem(vm, v.Elem())
	}, nil
}

func (c *compiler) slicePusher(t reflect.Type) (pusher, error) {
	elem, err := c.pusher(t.Elem())
	if err != nil {
		return nil, err
	}
	return func(vm *vm, v reflect.Value) error {
		if v.IsNil() {
			vm.l.PushNil()
			return nil
		}
		vm.room(4)
		vm.l.CreateTable(v.Len(), 0)
		for i := range v.Len() {
			if err := elem(vm, v.Index(i)); err != nil {
				return err
			}
			vm.l.RawSetInt(-2, i+1)
		}
		return nil
	}, nil
}

func (c *compiler) mapPusher(t reflect.Type) (pusher, error) {
	elem, err := c.pusher(t.Elem())
	if err != nil {
		return nil, err
	}
	return func(vm *vm, v reflect.Value) error {
		if v.IsNil() {
			vm.l.PushNil()
			return nil
		}
		vm.room(4)
		vm.l.CreateTable(0, v.Len())
		for it := v.MapRange(); it.Next(); {
			vm.l.PushString(it.Key().String())
			if err := elem(vm, it.Value()); err != nil {
				return err
			}
			vm.l.RawSet(-3)
		}
		return nil
	}, nil
}

// funcPusher binds functions that functions return.
func (c *compiler) funcPusher(t reflect.Type) (pusher, error) {
	proto := &bound{name: "function", typ: t, variadic: t.IsVariadic()}
	if err := c.params(proto, &Func{}, nil); err != nil {
		return nil, err
	}
	if err := c.results(proto); err != nil {
		return nil, err
	}
	return func(vm *vm, v reflect.Value) error {
		if v.IsNil() {
			vm.l.PushNil()
			return nil
		}
		b := *proto
		b.fn = v
		vm.pushBound(&b)
		return nil
	}, nil
}

// pushAny pushes a value whose type is known at run time only.
func (vm *vm) pushAny(v any, depth int) error {
	l := vm.l
	if depth > maxDepth {
		return errDeep
	}
	vm.room(4)
	switch v := v.(type) {
	case nil:
		l.PushNil()
	case string:
		l.PushString(v)
	case []byte:
		l.PushString(string(v))
	case bool:
		l.PushBoolean(v)
	case int64:
		l.PushNumber(float64(v))
	case int:
		l.PushNumber(float64(v))
	case float64:
		l.PushNumber(v)
	case []any:
		return vm.pushList(v, depth)
	case map[string]any:
		return vm.pushMap(v, depth)
	case settings.Map:
		return vm.pushSettings(v, depth)
	case *Callback:
		return vm.pushCallback(v)
	default:
		return vm.pushOther(v)
	}
	return nil
}

func (vm *vm) pushList(v []any, depth int) error {
	vm.l.CreateTable(len(v), 0)
	for i, e := range v {
		if err := vm.pushAny(e, depth+1); err != nil {
			return err
		}
		vm.l.RawSetInt(-2, i+1)
	}
	return nil
}

func (vm *vm) pushMap(v map[string]any, depth int) error {
	vm.l.CreateTable(0, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		vm.l.PushString(k)
		if err := vm.pushAny(v[k], depth+1); err != nil {
			return err
		}
		vm.l.RawSet(-3)
	}
	return nil
}

func (vm *vm) pushSettings(v settings.Map, depth int) error {
	vm.l.CreateTable(0, len(v))
	for _, kv := range v {
		vm.l.PushString(kv.Key)
		if err := vm.pushAny(kv.Value, depth+1); err != nil {
			return err
		}
		vm.l.RawSet(-3)
	}
	return nil
}

// pushOther pushes a value whose type shows at run time only. Pushers of such types are kept.
func (vm *vm) pushOther(v any) error {
	rv := reflect.ValueOf(v)
	p, err := vm.eng.dynamicPusher(rv.Type())
	if err != nil {
		return err
	}
	return p(vm, rv)
}
