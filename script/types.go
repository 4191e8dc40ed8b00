package script

import (
	"fmt"
	"reflect"

	lua "github.com/Shopify/go-lua"

	"example.com/svc/mta"
	"example.com/svc/mta/settings"
)

// ref is what a userdata holds. A nil v is an object that is no longer valid.
type ref struct {
	v   any
	typ *typeInfo
	enc settings.Map // of a settings object, made when first indexed
}

// typeInfo is a declared type, or a settings struct that a function returns.
type typeInfo struct {
	name    string
	base    reflect.Type // without pointers
	ptr     reflect.Type
	slot    int
	scoped  bool
	setting bool // settings struct without declaration

	methods map[string]*bound
	fields  map[string]*bound
	hooks   map[string]*bound
}

// typeSet is the declared types of an engine. It does not change after New.
type typeSet struct {
	byType    map[reflect.Type]*typeInfo
	list      []*typeInfo
	rejection *typeInfo
	file      *typeInfo
}

var (
	messageType   = reflect.TypeFor[mta.Message]()
	sessionType   = reflect.TypeFor[mta.Session]()
	rejectionType = reflect.TypeFor[mta.Rejection]()
)

func newTypeSet() *typeSet {
	ts := &typeSet{byType: make(map[reflect.Type]*typeInfo)}
	ts.rejection = ts.add("rejection", rejectionType)
	ts.file = ts.add("file", reflect.TypeFor[luaFile]())
	return ts
}

func (ts *typeSet) add(name string, t reflect.Type) *typeInfo {
	ti := &typeInfo{
		name: name, base: t, ptr: reflect.PointerTo(t), slot: slotFirst + len(ts.list),
		methods: map[string]*bound{}, fields: map[string]*bound{}, hooks: map[string]*bound{},
	}
	ts.byType[t] = ti
	ts.list = append(ts.list, ti)
	return ti
}

// find returns the declaration of t or of what t points to.
func (ts *typeSet) find(t reflect.Type) *typeInfo {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return ts.byType[t]
}

// setting returns the type of settings objects for struct type t, made on first demand while the engine is built.
func (ts *typeSet) setting(t reflect.Type) *typeInfo {
	if ti := ts.byType[t]; ti != nil {
		return ti
	}
	ti := ts.add(lowerName(t), t)
	ti.setting = true
	return ti
}

func asRejection(err error) (*mta.Rejection, bool) {
	for err != nil {
		if r, ok := err.(*mta.Rejection); ok {
			return r, true
		}
		switch u := err.(type) {
		case interface{ Unwrap() error }:
			err = u.Unwrap()
		case interface{ Unwrap() []error }:
			for _, e := range u.Unwrap() {
				if r, ok := asRejection(e); ok {
					return r, true
				}
			}
			return nil, false
		default:
			return nil, false
		}
	}
	return nil, false
}

// pushRef pushes v as an object of type ti.
func (vm *vm) pushRef(ti *typeInfo, v any) {
	r := &ref{v: v, typ: ti}
	if ti.scoped {
		vm.scoped = append(vm.scoped, r)
	}
	l := vm.l
	l.PushUserData(r)
	l.RawGetInt(lua.RegistryIndex, ti.slot)
	if !l.IsTable(-1) {
		l.Pop(1)
		vm.makeMetatable(ti)
		l.RawGetInt(lua.RegistryIndex, ti.slot)
	}
	l.SetMetaTable(-2)
}

// refAt returns the object at idx, nil when there is none of ours.
func (vm *vm) refAt(idx int) *ref {
	r, _ := vm.l.ToUserData(idx).(*ref)
	return r
}

// stale is the error for a use of an object whose call is over.
func stale(ti *typeInfo) error { return fmt.Errorf("%s is %w", ti.name, ErrStale) }

// makeMetatable fills the slot of ti.
func (vm *vm) makeMetatable(ti *typeInfo) {
	l := vm.l
	vm.room(6)
	l.CreateTable(0, 8)
	meta := l.Top()
	l.CreateTable(0, len(ti.methods))
	for name, b := range ti.methods {
		vm.pushBound(b)
		l.SetField(-2, name)
	}
	if ti.setting || len(ti.fields) > 0 || ti.hooks["__index"] != nil {
		vm.pushIndex(ti)
		l.SetField(meta, "__index")
	} else {
		l.SetField(meta, "__index")
	}
	for name, b := range ti.hooks {
		switch name {
		case "__index", settingHook:
			continue
		case "__pairs":
			vm.pushPairs(func() { b.invoke(vm) })
		default:
			vm.pushBound(b)
		}
		l.SetField(meta, name)
	}
	if ti.setting {
		vm.pushPairs(func() {
			r := vm.mustRef(ti, 1)
			vm.mustPush(vm.pushAny(r.encoded(), 0))
		})
		l.SetField(meta, "__pairs")
	}
	vm.defaultHook(ti, "__tostring", vm.refString)
	vm.defaultHook(ti, "__eq", vm.refEqual)
	if ti.hooks["__newindex"] == nil {
		vm.defaultHook(ti, "__newindex", func(*lua.State) int {
			return vm.raisef("%s has no field that can be set", ti.name)
		})
	}
	l.PushString(ti.name)
	l.SetField(meta, "__metatable")
	l.RawSetInt(lua.RegistryIndex, ti.slot)
}

// defaultHook sets a field of the metatable on top of the stack unless the type has its own.
func (vm *vm) defaultHook(ti *typeInfo, name string, f lua.Function) {
	if ti.hooks[name] != nil {
		return
	}
	vm.l.PushGoFunction(f)
	vm.l.SetField(-2, name)
}

// pushIndex replaces the method table on top of the stack by an __index function: methods, fields, settings, then the
// hook of the type.
func (vm *vm) pushIndex(ti *typeInfo) {
	hook := ti.hooks["__index"]
	vm.l.PushGoClosure(func(l *lua.State) int {
		l.SetTop(2)
		l.PushValue(2)
		l.RawGet(lua.UpValueIndex(1))
		if !l.IsNil(-1) {
			return 1
		}
		l.Pop(1)
		if key, ok := vm.stringAt(2); ok {
			if b := ti.fields[key]; b != nil {
				l.SetTop(1)
				return b.invoke(vm)
			}
			if ti.setting {
				r := vm.mustRef(ti, 1)
				vm.mustPush(vm.pushAny(r.encoded().Get(key), 0))
				return 1
			}
		}
		if hook != nil {
			return hook.invoke(vm)
		}
		l.PushNil()
		return 1
	}, 1)
}

// pushPairs pushes a __pairs hook around fill, which leaves a table.
func (vm *vm) pushPairs(fill func()) {
	vm.l.PushGoFunction(func(l *lua.State) int {
		l.SetTop(1)
		fill()
		if !l.IsTable(-1) {
			return vm.raisef("object cannot be iterated")
		}
		l.Replace(1)
		l.SetTop(1)
		return vm.rawPairs(l)
	})
}

func (r *ref) encoded() settings.Map {
	if r.enc == nil {
		r.enc = settings.Encode(r.v)
	}
	return r.enc
}

// mustRef returns the valid object of type ti at idx or throws.
func (vm *vm) mustRef(ti *typeInfo, idx int) *ref {
	r := vm.refAt(idx)
	if r == nil || r.typ != ti {
		vm.raisef("%s expected, got %s", ti.name, vm.typeName(idx))
	}
	if r.v == nil {
		vm.raiseError(stale(ti))
	}
	return r
}

func (vm *vm) mustPush(err error) {
	if err != nil {
		vm.raiseError(err)
	}
}

// refString is the default __tostring.
func (vm *vm) refString(l *lua.State) int {
	r := vm.refAt(1)
	switch {
	case r == nil:
		l.PushString("userdata")
	case r.v == nil:
		l.PushString(r.typ.name + " (no longer valid)")
	default:
		l.PushString(vm.goText(r))
	}
	return 1
}

func (vm *vm) goText(r *ref) (s string) {
	defer vm.guard()
	switch v := r.v.(type) {
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	}
	return fmt.Sprintf("%s: %p", r.typ.name, r)
}

// refEqual is the default __eq: the same pointer, or equal comparable values.
func (vm *vm) refEqual(l *lua.State) int {
	a, b := vm.refAt(1), vm.refAt(2)
	eq := a != nil && b != nil && a.typ == b.typ && a.v != nil && b.v != nil && sameValue(a, b)
	l.PushBoolean(eq)
	return 1
}

func sameValue(a, b *ref) bool {
	va, vb := reflect.ValueOf(a.v), reflect.ValueOf(b.v)
	if va.Kind() == reflect.Pointer && vb.Kind() == reflect.Pointer && va.Pointer() == vb.Pointer() {
		return true
	}
	if va.Kind() == reflect.Pointer && vb.Kind() == reflect.Pointer {
		return false
	}
	if va.Kind() == reflect.Pointer {
		va = va.Elem()
	}
	if vb.Kind() == reflect.Pointer {
		vb = vb.Elem()
	}
	return va.Comparable() && vb.Comparable() && va.Equal(vb)
}
