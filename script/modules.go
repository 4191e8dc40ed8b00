package script

import (
	"fmt"
	"slices"
	"strings"

	lua "github.com/Shopify/go-lua"
)

// moduleInfo is a module ready to be built in a state.
type moduleInfo struct {
	name   string
	funcs  map[string]*bound
	values map[string]any
	subs   []string // names of modules that are fields of this one

	missing []func(name string) error
}

// bindModules compiles the declarations. Types come first, so that functions of any module may use them.
func (e *Engine) bindModules() error {
	mods := e.cfg.Modules
	type owned struct {
		ti   *typeInfo
		decl TypeDecl
	}
	var types []owned
	for _, m := range mods {
		for _, t := range m.Types {
			if t.typ == nil || t.Name == "" {
				return fmt.Errorf("module %s: a type was not made with Type, or has no name", m.Name)
			}
			old := e.types.byType[t.typ]
			switch {
			case old == e.types.rejection && len(old.methods)+len(old.fields)+len(old.hooks) == 0 && old.name == "rejection":
				old.name = t.Name
				types = append(types, owned{old, t})
				continue
			case old != nil:
				return fmt.Errorf("module %s: type %s (%v) is declared already, as %s", m.Name, t.Name, t.typ, old.name)
			}
			ti := e.types.add(t.Name, t.typ)
			ti.scoped = t.Scoped || t.typ == messageType || t.typ == sessionType
			types = append(types, owned{ti, t})
		}
	}
	types = append(types, owned{e.types.file, fileType()})
	for _, o := range types {
		if err := e.bindType(o.ti, o.decl); err != nil {
			return err
		}
	}
	e.module(e.cfg.Prefix)
	for i := range mods {
		if err := e.bindModule(&mods[i]); err != nil {
			return err
		}
	}
	e.nest()
	return nil
}

func (e *Engine) bindType(ti *typeInfo, t TypeDecl) error {
	for i := range t.Methods {
		f := &t.Methods[i]
		b, err := e.comp.compile(t.Name+":", f, ti)
		if err != nil {
			return err
		}
		into := ti.methods
		switch {
		case f.field:
			into = ti.fields
		case strings.HasPrefix(f.Name, "__"):
			into = ti.hooks
		}
		if into[f.Name] != nil {
			return fmt.Errorf("%s: %s is declared twice", t.Name, f.Name)
		}
		into[f.Name] = b
	}
	return nil
}

// module returns the module of that name, made when there is none: two values may add to one module.
func (e *Engine) module(name string) *moduleInfo {
	m := e.modules[name]
	if m == nil {
		m = &moduleInfo{name: name, funcs: map[string]*bound{}, values: map[string]any{}}
		e.modules[name] = m
		e.names = append(e.names, name)
	}
	return m
}

func (e *Engine) bindModule(m *Module) error {
	if m.Name == "" {
		return fmt.Errorf("a module has no name")
	}
	if m.Absent != nil {
		if len(m.Funcs)+len(m.Types)+len(m.Values) > 0 {
			return fmt.Errorf("module %s is absent and declares something", m.Name)
		}
		e.absent[m.Name] = m.Absent
		return nil
	}
	mi := e.module(m.Name)
	if m.Missing != nil {
		mi.missing = append(mi.missing, m.Missing)
	}
	for i := range m.Funcs {
		f := &m.Funcs[i]
		if err := e.freeName(mi, f.Name); err != nil {
			return err
		}
		b, err := e.comp.compile(m.Name+".", f, nil)
		if err != nil {
			return err
		}
		mi.funcs[f.Name] = b
	}
	for _, v := range m.Values {
		if err := e.freeName(mi, v.Name); err != nil {
			return err
		}
		mi.values[v.Name] = v.Value
	}
	return nil
}

func (e *Engine) freeName(mi *moduleInfo, name string) error {
	_, taken := mi.values[name]
	if taken || mi.funcs[name] != nil || mi.name == e.cfg.Prefix && name == "on" {
		return fmt.Errorf("%s.%s is declared twice", mi.name, name)
	}
	return nil
}

// nest makes "svc.geo" the field geo of "svc", and so on below.
func (e *Engine) nest() {
	slices.Sort(e.names)
	for i := 0; i < len(e.names); i++ {
		name := e.names[i]
		dot := strings.LastIndexByte(name, '.')
		if dot < 0 {
			continue
		}
		parent := name[:dot]
		if e.modules[parent] == nil {
			if !strings.HasPrefix(parent, e.cfg.Prefix+".") {
				continue
			}
			e.module(parent)
		}
		e.modules[parent].subs = append(e.modules[parent].subs, name)
	}
}

// pushModule pushes the table of a module of this state, built on first demand.
func (vm *vm) pushModule(mi *moduleInfo) {
	l := vm.l
	vm.room(8)
	l.RawGetInt(lua.RegistryIndex, slotLoaded)
	l.PushString(mi.name)
	l.RawGet(-2)
	if !l.IsNil(-1) {
		l.Remove(-2)
		return
	}
	l.Pop(1)
	vm.buildModule(mi)
	l.PushString(mi.name)
	l.PushValue(-2)
	l.RawSet(-4)
	l.Remove(-2)
}

// buildModule pushes a table whose functions, values and modules are made when they are first used: a state needs few
// of them. Assignments of the policy win.
func (vm *vm) buildModule(mi *moduleInfo) {
	l := vm.l
	l.CreateTable(0, 16)
	l.CreateTable(0, 4)
	l.PushGoFunction(func(l *lua.State) int {
		key, ok := vm.stringAt(2)
		if !ok {
			l.PushNil()
			return 1
		}
		if !vm.pushMember(mi, key) {
			vm.miss(mi, key)
			l.PushNil()
			return 1
		}
		l.PushValue(2)
		l.PushValue(-2)
		l.RawSet(1)
		return 1
	})
	l.SetField(-2, "__index")
	vm.pushPairs(func() {
		for _, name := range mi.members(vm.eng) {
			l.PushString(name)
			l.Table(1)
			l.Pop(1)
		}
		l.PushValue(1)
	})
	l.SetField(-2, "__pairs")
	l.SetMetaTable(-2)
}

// members lists what the module holds.
func (mi *moduleInfo) members(e *Engine) []string {
	var names []string
	for n := range mi.funcs {
		names = append(names, n)
	}
	for n := range mi.values {
		names = append(names, n)
	}
	for _, s := range mi.subs {
		names = append(names, s[len(mi.name)+1:])
	}
	if mi.name == e.cfg.Prefix {
		names = append(names, "on")
	}
	slices.Sort(names)
	return names
}

// pushMember pushes a member of a module and reports whether there is one.
func (vm *vm) pushMember(mi *moduleInfo, key string) bool {
	if b := mi.funcs[key]; b != nil {
		vm.pushBound(b)
		return true
	}
	if v, ok := mi.values[key]; ok {
		vm.mustPush(vm.pushAny(v, 0))
		return true
	}
	if slices.Contains(mi.subs, mi.name+"."+key) {
		vm.pushModule(vm.eng.modules[mi.name+"."+key])
		return true
	}
	if mi.name == vm.eng.cfg.Prefix && key == "on" {
		vm.l.PushGoFunction(vm.luaOn)
		return true
	}
	return false
}

func (vm *vm) luaOn(l *lua.State) int {
	name, ok := vm.stringAt(1)
	if !ok || name == "" {
		return vm.raisef("bad argument #1 (event) to '%s.on': string expected, got %s", vm.eng.cfg.Prefix, vm.typeName(1))
	}
	if !l.IsFunction(2) {
		return vm.raisef("bad argument #2 (fn) to '%s.on': function expected, got %s", vm.eng.cfg.Prefix, vm.typeName(2))
	}
	if err := vm.on(name, 2); err != nil {
		return vm.raiseError(err)
	}
	return 0
}
