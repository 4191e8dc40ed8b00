package script

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	lua "github.com/Shopify/go-lua"
)

// defaultPath is package.path: templates relative to the directory of the policy.
const defaultPath = "./?.lua;./?/init.lua"

// noModule is the error for a name that is neither a module nor a file.
type noModule struct{ text string }

func (e *noModule) Error() string { return e.text }

func isNoModule(err error) bool {
	_, ok := err.(*noModule)
	return ok
}

// file is a Lua file of a generation, compiled once, so that all states of the generation run the same text.
type file struct {
	name  string // in errors
	chunk []byte
}

// openPackage sets the global require and package.
func (vm *vm) openPackage() {
	l := vm.l
	l.NewTable()
	l.RawSetInt(lua.RegistryIndex, slotLoaded)
	l.CreateTable(0, 4)
	l.PushString(defaultPath)
	l.SetField(-2, "path")
	l.RawGetInt(lua.RegistryIndex, slotLoaded)
	l.SetField(-2, "loaded")
	l.NewTable()
	l.SetField(-2, "preload")
	l.PushString("/\n;\n?\n!\n-\n")
	l.SetField(-2, "config")
	l.PushValue(-1)
	l.RawSetInt(lua.RegistryIndex, slotPackage)
	l.SetGlobal("package")
	l.Register("require", vm.require)
}

// require is the function of that name: what is loaded, then package.preload, then modules of the engine, then Lua
// files on package.path.
func (vm *vm) require(l *lua.State) int {
	name, ok := vm.stringAt(1)
	if !ok {
		return vm.raisef("bad argument #1 to 'require' (string expected, got %s)", vm.typeName(1))
	}
	l.SetTop(1)
	l.RawGetInt(lua.RegistryIndex, slotLoaded)
	l.PushString(name)
	l.RawGet(2)
	if l.ToBoolean(-1) {
		return 1
	}
	l.Pop(1)
	if vm.pushPreload(name) {
		l.PushString(name)
		return vm.runRequired(name, 1)
	}
	if mi := vm.eng.modules[name]; mi != nil {
		vm.pushModule(mi)
		return 1
	}
	f, err := vm.gen.find(name, vm.searchPath())
	if absent := vm.eng.absent[name]; absent != nil && isNoModule(err) {
		err = absent
	}
	if err != nil {
		return vm.raiseError(err)
	}
	if err := l.Load(bytes.NewReader(f.chunk), "", "b"); err != nil {
		return vm.raiseError(fmt.Errorf("load module '%s': %w", name, err))
	}
	l.PushString(name)
	l.PushString(f.name)
	return vm.runRequired(name, 2)
}

// pushPreload pushes package.preload[name] when it is a function.
func (vm *vm) pushPreload(name string) bool {
	l := vm.l
	top := l.Top()
	l.RawGetInt(lua.RegistryIndex, slotPackage)
	l.PushString("preload")
	l.RawGet(-2)
	if l.IsTable(-1) {
		l.PushString(name)
		l.RawGet(-2)
		if l.IsFunction(-1) {
			l.Insert(top + 1)
			l.SetTop(top + 1)
			return true
		}
	}
	l.SetTop(top)
	return false
}

// runRequired calls the loader below its argc arguments and keeps what it returns as the module.
func (vm *vm) runRequired(name string, argc int) int {
	l := vm.l
	l.Call(argc, 1)
	l.PushString(name)
	l.RawGet(2)
	set := !l.IsNil(-1) // the loader put something into package.loaded
	l.Pop(1)
	if l.IsNil(-1) {
		l.Pop(1)
		if set {
			l.PushString(name)
			l.RawGet(2)
			return 1
		}
		l.PushBoolean(true)
	}
	l.PushString(name)
	l.PushValue(-2)
	l.RawSet(2)
	return 1
}

func (vm *vm) searchPath() string {
	l := vm.l
	defer l.SetTop(l.Top())
	l.RawGetInt(lua.RegistryIndex, slotPackage)
	l.PushString("path")
	l.RawGet(-2)
	s, ok := vm.stringAt(-1)
	if !ok {
		vm.raisef("'package.path' must be a string")
	}
	return s
}

// find returns the file of a module, compiled. What was found once stays for the generation.
func (g *generation) find(name, path string) (*file, error) {
	g.filesMu.Lock()
	defer g.filesMu.Unlock()
	key := path + "\x00" + name
	if f := g.files[key]; f != nil {
		return f, nil
	}
	var tried strings.Builder
	for template := range strings.SplitSeq(path, ";") {
		if template == "" || g.dir == "" && !filepath.IsAbs(template) || strings.ContainsRune(name, 0) {
			continue
		}
		p := strings.ReplaceAll(template, "?", strings.ReplaceAll(name, ".", string(filepath.Separator)))
		if !filepath.IsAbs(p) {
			p = filepath.Join(g.dir, p)
		}
		src, err := readBounded(p)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(&tried, "\n\tno file '%s'", p)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("module '%s': %w", name, err)
		}
		f := &file{name: g.fileName(p)}
		if f.chunk, err = compileChunk(f.name, src); err != nil {
			return nil, fmt.Errorf("module '%s': %w", name, err)
		}
		g.files[key] = f
		return f, nil
	}
	return nil, &noModule{fmt.Sprintf("module '%s' not found:\n\tno module of that name is built in%s", name, tried.String())}
}

// fileName is how errors call a file: relative to the policy where it lies below it.
func (g *generation) fileName(p string) string {
	if rel, err := filepath.Rel(g.dir, p); err == nil && !strings.HasPrefix(rel, "..") {
		return filepath.ToSlash(rel)
	}
	return p
}
