package script

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
)

type box struct{ n int }

func (b *box) String() string { return fmt.Sprintf("box(%d)", b.n) }

type color string

func (color) Values() []string { return []string{"red", "blue"} }

type opts struct {
	Size int `set:"size" default:"3"`
}

// bindModule has a function of each shape.
func bindModule() Module {
	return Module{
		Name: "svc.t", Doc: "Tests.",
		Funcs: []Func{
			Fn("str", "", func(s string) string { return s + "!" }, "s"),
			Fn("bytes", "", func(b []byte) []byte { return append(b, 0xff) }),
			Fn("int", "", func(n int) int { return n * 2 }, "n"),
			Fn("small", "", func(n int8) int8 { return n }, "n"),
			Fn("uint", "", func(n uint) uint { return n }, "n"),
			Fn("float", "", func(f float64) float64 { return f / 2 }),
			Fn("bool", "", func(b bool) bool { return !b }),
			Fn("span", "Doubles a span.", func(d time.Duration) time.Duration { return 2 * d }, "span"),
			Fn("setspan", "", func(d settings.Duration) string { return d.String() }),
			Fn("any", "", func(v any) string { return fmt.Sprintf("%T %v", v, v) }),
			Fn("echo", "", func(v any) any { return v }),
			Fn("map", "", func(m map[string]any) int { return len(m) }),
			Fn("list", "", func(l []any) int { return len(l) }),
			Fn("strs", "", func(l []string) string { return strings.Join(l, ",") }),
			Fn("ints", "", func(m map[string]int) int { return m["a"] + m["b"] }),
			Fn("opt", "", func(s *string, n *int) string { return fmt.Sprint(s == nil, n == nil) }),
			Fn("marked", "Has an optional number.", func(a string, n int) string { return fmt.Sprint(a, n) }, "a", "n?"),
			Fn("var", "Adds.", func(ctx context.Context, first string, rest ...any) int { return len(rest) }, "first", "rest"),
			Fn("color", "", func(c color) string { return string(c) }),
			Fn("addr", "", func(a mta.Address) string { return a.Domain }, "address"),
			Fn("opts", "", func(o opts) int { return o.Size }, "options?"),
			Fn("two", "", func() (int, string, error) { return 1, "b", nil }),
			Fn("vals", "", func() (Values, error) { return Values{1, "b", nil, true}, nil }),
			Fn("none", "", func() {}),
			Fn("box", "", func(n int) *box { return &box{n} }),
			Fn("nobox", "", func() *box { return nil }),
			Fn("maker", "", func(n int) func(int) int { return func(m int) int { return n + m } }),
			Fn("apply", "", func(ctx context.Context, cb *Callback, args ...any) (Values, error) {
				return cb.Call(ctx, args...)
			}),
		},
		Types: []TypeDecl{Type[box]("box", "A box.",
			Fn("add", "Adds n.", func(b *box, n int) *box { b.n += n; return b }, "n"),
			Get("n", "What is inside.", func(b *box) int { return b.n }),
			Fn("__index", "", func(b *box, k any) (any, error) {
				if k == "bad" {
					return nil, errors.New("no such thing")
				}
				return fmt.Sprint("idx ", k), nil
			}),
			Fn("__newindex", "", func(b *box, k string, v int) { b.n = v }),
			Fn("__len", "", func(b *box) int { return b.n }),
			Fn("__call", "", func(b *box, x int) int { return b.n * x }),
			Fn("__pairs", "", func(b *box) map[string]any { return map[string]any{"n": b.n} }),
		)},
		Values: []Value{{"answer", "", 42}, {"table", "", map[string]any{"a": []any{1, "x"}}}},
	}
}

func TestBinding(t *testing.T) {
	with := func(c *Config) { c.Modules = append(c.Modules, bindModule()) }
	for _, c := range []struct{ expr, want string }{
		{"t.str('a')", "a!"}, {"t.str(12)", "12!"}, {"t.str(1.5)", "1.5!"}, {"#t.bytes('\\0\\255')", "3"},
		{"t.int(21)", "42"}, {"t.small(-128)", "-128"}, {"t.uint(7)", "7"}, {"t.float(1)", "0.5"}, {"t.bool(false)", "true"},
		{"t.span('5m')", "600"}, {"t.span(1.5)", "3"}, {"t.setspan('90s')", "1m 30s"},
		{"t.any(1)", "int64 1"}, {"t.any(1.5)", "float64 1.5"}, {"t.any('x')", "string x"}, {"t.any(nil)", "<nil> <nil>"},
		{"t.any({1, 'b'})", "[]interface {} [1 b]"}, {"t.any({a = 1})", "map[string]interface {} map[a:1]"},
		{"t.any({})", "map[string]interface {} map[]"}, {"t.any({1, x = 2})", "map[string]interface {} map[1:1 x:2]"},
		{"t.any(t.box(3))", "*script.box box(3)"},
		{"t.echo({a = {1, 2, {b = 'c'}}}).a[3].b", "c"}, {"t.echo(print) == print", "true"},
		{"t.map({a = 1, b = 2})", "2"}, {"t.list({1, 2, 3})", "3"}, {"t.list({})", "0"}, {"t.strs({'a', 'b'})", "a,b"},
		{"t.ints({a = 1, b = 2})", "3"}, {"t.opt()", "true true"}, {"t.opt('a', 1)", "false false"}, {"t.opt(nil, 1)", "true false"},
		{"t.marked('a')", "a0"}, {"t.marked('a', 5)", "a5"}, {"t.var('a')", "0"}, {"t.var('a', 1, nil)", "2"},
		{"t.color('red')", "red"}, {"t.addr('u@x.example')", "x.example"}, {"t.opts()", "3"}, {"t.opts{size = 9}", "9"},
		{"select('#', t.two())", "2"}, {"select(2, t.two())", "b"}, {"select('#', t.vals())", "4"}, {"select('#', t.none())", "0"},
		{"t.box(1):add(2).n", "3"}, {"tostring(t.box(4))", "box(4)"}, {"t.nobox()", "nil"}, {"t.box(1).foo", "idx foo"},
		{"(function() local b = t.box(1) b.x = 9 return b.n end)()", "9"}, {"#t.box(5)", "5"}, {"t.box(5)(3)", "15"},
		{"(function() for k, v in pairs(t.box(6)) do return k .. v end end)()", "n6"},
		{"(function() local b = t.box(1) return b == b:add(1) and b ~= t.box(2) end)()", "true"},
		{"getmetatable(t.box(1))", "box"}, {"t.maker(5)(6)", "11"},
		{"(t.apply(function(a, b) return a .. b end, 'x', 'y'))", "xy"},
		{"t.answer", "42"}, {"t.table.a[2]", "x"}, {"tostring(t.nothing)", "nil"}, {"svc.t == t", "true"}, {"svc.version", "1.0"},
		{"(function() local n = 0 for k in pairs(svc) do n = n + 1 end return n >= 5 end)()", "true"},
		{"(function() t.own = 1 return require('svc.t').own end)()", "1"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			v, err := eval(t, "local t = require 'svc.t' return tostring("+c.expr+")", with)
			if err != nil || v != c.want {
				t.Errorf("got %v, %v; want %s", v, err, c.want)
			}
		})
	}
	for _, c := range []struct{ expr, want string }{
		{"t.str()", "bad argument #1 (s) to 'svc.t.str': string expected, got no value"},
		{"t.str({})", "bad argument #1 (s) to 'svc.t.str': string expected, got table"},
		{"t.int('1')", "integer expected, got string"}, {"t.int(1.5)", "number has no integer representation"},
		{"t.int(0/0)", "no integer representation"}, {"t.small(128)", "out of range"}, {"t.uint(-1)", "out of range"},
		{"t.span('soon')", `invalid duration "soon"`}, {"t.color('green')", `"green" is none of red, blue`},
		{"t.addr('@@')", "bad address"}, {"t.addr(t.box(1))", "address expected, got box"},
		{"t.opts{sise = 1}", `opts: unknown setting "sise", did you mean "size"?`},
		{"t.box(1).bad", "no such thing"}, {"t.box(1):add('x')", "bad argument #1 (n) to 'box:add': integer expected"},
		{"t.box(1).add(1, 2)", "bad argument self to 'box:add': box expected, got number"},
		{"t.strs({1, {}})", "element 2: string expected, got table"}, {"t.strs{a = 1}", "got a table with names"},
		{"t.any({[{}] = 1})", "key is a table, want a string"},
		{"(function() local a = {} a.a = a return t.any(a) end)()", "table contains itself"},
		{"(function() local a = {} for i = 1, 100 do a = {a} end return t.any(a) end)()", "nested over 64"},
		{"(function() local a = {} for i = 1, 40 do a = {a, a} end return t.any(a) end)()", "over 1048576 entries"},
		{"svc.version.x.y", "attempt to index"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			_, err := eval(t, "local t = require 'svc.t' return tostring("+c.expr+")", with)
			wantText(t, err, "policy.lua:3: ", c.want)
		})
	}
}

func TestDeclarationFaults(t *testing.T) {
	for name, c := range map[string]struct {
		mods []Module
		want string
	}{
		"not a function":    {[]Module{{Name: "m", Funcs: []Func{Fn("f", "", 1)}}}, "m.f: not a function"},
		"undeclared arg":    {[]Module{{Name: "m", Funcs: []Func{Fn("f", "", func(*undeclared) {})}}}, "not declared"},
		"undeclared result": {[]Module{{Name: "m", Funcs: []Func{Fn("f", "", func() undeclared { return undeclared{} })}}}, "not declared"},
		"twice":             {[]Module{{Name: "m", Funcs: []Func{Fn("f", "", func() {}), Fn("f", "", func() {})}}}, "m.f is declared twice"},
		"type twice":        {[]Module{{Name: "m", Types: []TypeDecl{Type[box]("a", ""), Type[*box]("b", "")}}}, "declared already, as a"},
		"svc.on":            {[]Module{{Name: "svc", Funcs: []Func{Fn("on", "", func() {})}}}, "svc.on is declared twice"},
		"method":            {[]Module{{Name: "m", Types: []TypeDecl{Type[box]("a", "", Fn("f", "", func(int) {}))}}}, "first parameter"},
		"names":             {[]Module{{Name: "m", Funcs: []Func{Fn("f", "", func(int) {}, "a", "b")}}}, "2 names for 1 parameters"},
		"no name":           {[]Module{{}}, "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(Config{Source: []byte{}, Bus: new(event.Local), Modules: c.mods})
			wantText(t, err, c.want)
		})
	}
}

func TestDescribe(t *testing.T) {
	got := map[string]string{}
	for _, d := range bindModule().Describe() {
		got[d.Name] = d.Kind + " " + d.Signature
	}
	for name, want := range map[string]string{
		"svc.t.str":    "function svc.t.str(s: string) -> string",
		"svc.t.span":   "function svc.t.span(span: duration) -> duration",
		"svc.t.marked": "function svc.t.marked(a: string, n?: integer) -> string",
		"svc.t.var":    "function svc.t.var(first: string, rest...: any) -> integer",
		"svc.t.opt":    "function svc.t.opt(arg1?: string, arg2?: integer) -> string",
		"svc.t.strs":   "function svc.t.strs(arg1: list<string>) -> string",
		"svc.t.opts":   "function svc.t.opts(options?: table) -> integer",
		"svc.t.two":    "function svc.t.two() -> (integer, string)",
		"svc.t.vals":   "function svc.t.vals() -> any...",
		"svc.t.box":    "function svc.t.box(arg1: integer) -> box",
		"svc.t.apply":  "function svc.t.apply(arg1: function, arg2...: any) -> any...",
		"svc.t.answer": "value svc.t.answer: integer",
		"box":          "type box",
		"box:add":      "method box:add(n: integer) -> box",
		"box.n":        "field box.n: integer",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}
