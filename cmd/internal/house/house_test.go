package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

// pkg is what go list says of one package.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Doc          string
	Name         string
}

func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports,Doc,Name", module+"/...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) < 20 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	return all
}

func short(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// floor returns the floor of a package. Helpers below an internal folder and packages ending in "test" stand on the
// floor of the folder they belong to, and may be imported by it alone.
func floor(name string) (int, bool) {
	if f, ok := floors[name]; ok {
		return f, true
	}
	f, ok := floors[path.Dir(name)+"/*"]
	return f, ok
}

// private reports whether name is a helper of one folder, and of which.
func private(name string) (owner string, ok bool) {
	if i := strings.Index(name, "/internal/"); i >= 0 {
		return name[:i], true
	}
	if base := path.Base(name); strings.HasSuffix(base, "test") && base == path.Base(path.Dir(name))+"test" && floorless(name) {
		return path.Dir(name), true
	}
	return "", false
}

func floorless(name string) bool { _, ok := floor(name); return !ok }

// TestFloors holds that a package imports lower floors only.
func TestFloors(t *testing.T) {
	for _, p := range list(t) {
		name := short(p.ImportPath)
		if strings.HasPrefix(name, "examples/") {
			continue
		}
		owner, isPrivate := private(name)
		own, ok := floor(name)
		if !ok && !isPrivate {
			t.Errorf("%s has no floor: give it one in the table of mta/doc.go and in floors.go", name)
			continue
		}
		for _, imp := range p.Imports {
			if !strings.HasPrefix(imp, module+"/") {
				continue
			}
			dep := short(imp)
			if depOwner, ok := private(dep); ok {
				if name != depOwner && !strings.HasPrefix(name, depOwner+"/") {
					t.Errorf("%s imports %s, which belongs to %s", name, dep, depOwner)
				}
				continue
			}
			if isPrivate {
				own, _ = floor(owner)
				own++ // a helper may look at its own folder
			}
			if f, _ := floor(dep); f >= own {
				t.Errorf("%s on floor %d imports %s on floor %d", name, own, dep, f)
			}
		}
	}
}

// TestNoLuaBelow holds that the core never imports the Lua layer.
func TestNoLuaBelow(t *testing.T) {
	for _, p := range list(t) {
		name := short(p.ImportPath)
		if strings.HasPrefix(name, "script") || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "examples/") {
			continue
		}
		for _, imp := range p.Imports {
			if imp == module+"/script" || strings.HasPrefix(imp, module+"/scriptmods") {
				t.Errorf("%s imports %s", name, imp)
			}
		}
	}
}

// TestOutsideImports holds who may import which module of others; tests may import anything.
func TestOutsideImports(t *testing.T) {
	for _, p := range list(t) {
		name := short(p.ImportPath)
		if strings.HasPrefix(name, "examples/") {
			continue
		}
		for _, imp := range p.Imports {
			for mod, allowed := range outside {
				if (imp == mod || strings.HasPrefix(imp, mod+"/")) && !slices.Contains(allowed, name) {
					t.Errorf("%s imports %s, which only %v may", name, imp, allowed)
				}
			}
		}
	}
}

// TestPackageComments holds that every package says its job.
func TestPackageComments(t *testing.T) {
	for _, p := range list(t) {
		if p.Doc == "" && (len(p.Imports) > 0) {
			t.Errorf("%s has no package comment", short(p.ImportPath))
		}
	}
}

// TestSource holds that nothing registers itself, and that only commands read the environment.
func TestSource(t *testing.T) {
	sources(t, func(rel string, _ *token.FileSet, f *ast.File) {
		mayReadEnv := strings.HasPrefix(rel, "cmd/") || strings.Contains(rel, "test/")
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s has an init function", rel)
				}
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if ok && x.Name == "os" && (n.Sel.Name == "Getenv" || n.Sel.Name == "LookupEnv") && !mayReadEnv {
					t.Errorf("%s reads the environment", rel)
				}
			}
			return true
		})
	})
}
