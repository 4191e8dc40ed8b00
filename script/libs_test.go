package script

import (
	"path/filepath"
	"testing"
	"time"
)

func TestLibraries(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"return ('hello world'):match('(%w+) (%w+)')", "hello"},
		{"return select(2, ('hello world'):find('o w'))", "7"},
		{"return ('key = value'):gsub('(%w+)%s*=%s*(%w+)', '%2=%1')", "value=key"},
		{"return (('abc'):gsub('', '-'))", "-a-b-c-"},
		{"return (('hello'):gsub('l', {l = 'L'}))", "heLLo"},
		{"return (('hello'):gsub('l', function(c) return nil end))", "hello"},
		{"return (('abc'):gsub('%w', '%0%0', 2))", "aabbc"},
		{"return (('hello hello'):gsub('^hello', 'x'))", "x hello"},
		{"local t = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do t[#t+1] = k .. v end return table.concat(t, ';')", "a1;b2"},
		{"local n = 0 for w in (''):gmatch('x*') do n = n + 1 end return n", "1"},
		{"return ('THE (quick) fox'):find('%((%a+)%)')", "5"},
		{"return ('f(a(b)c)d'):match('%b()')", "(a(b)c)"},
		{"return ('THE (quick) fox'):gsub('%f[%a]%a+', 'W')", "W (W) W"},
		{"return ('  trim  '):match('^%s*(.-)%s*$') .. '|'", "trim|"},
		{"return ('hello'):find('l', 1, true)", "3"},
		{"return ('a.b'):find('.', 2, true)", "2"},
		{"return ('x=x'):match('(%w)=%1')", "x"},
		{"return ('abc'):match('()b()')", "2"},
		{"return ('[]]'):match('[]]+')", "]]"},
		{"return ('a-z'):match('[a%-]+')", "a-"},
		{"return ('abc'):find('b', -1)", "nil"},
		{"return ('abc'):find('', 10)", "nil"},
		{"return ('abc'):find('', 4)", "4"},
		{"return ('x^2'):match('[%^x]+')", "x^"},
		{"return ('0x1F'):match('^0[xX](%x+)$')", "1F"},
		{"return ('ÄB'):lower() == 'Äb' and ('äb'):upper() == 'äB'", "true"},
		{"return ('ab\\255'):reverse() == '\\255ba'", "true"},
		{"return ('ab'):rep(3, '-')", "ab-ab-ab"},
		{"return ('%5.2f|%d|%s|%q|%x|%-5s|%05d|%g'):format(3.14159, 42, nil, 'a\"b\\n', 255, 'ab', 42, 0.1)", " 3.14|42|nil|\"a\\\"b\\\n\"|ff|ab   |00042|0.1"},
		{"return ('%g %g %.3g'):format(1e20, 100000000, 1234.5)", "1e+20 1e+08 1.23e+03"},
		{"return ('%s %5s %.2s'):format(1, 'a', 'xyz')", "1     a xy"},
		{"return ('%f'):format(1/0)", "inf"},
		{"return ('%c%c'):format(72, 255) == 'H\\255'", "true"},
		{"return math.huge == 1/0", "true"},
		{"return math.type(1) .. math.type(1.5) .. tostring(math.type('1'))", "integerfloatnil"},
		{"return math.tointeger(3.0) .. tostring(math.tointeger(3.5))", "3nil"},
		{"return table.unpack({1, 2, 3}, 2)", "2"},
		{"return table.concat({1, 2.5, 'x'}, ', ')", "1, 2.5, x"},
		{"local t = {} for i = 1, 50 do t['k' .. i] = i end for k in pairs(t) do t[k] = nil end return next(t)", "nil"},
		{"local t, n = {1, 2, nil, 4, x = 1, [1.5] = 2, [true] = 3, [print] = 4}, 0 for k, v in pairs(t) do n = n + 1 end return n", "7"},
		{"local t, s = {10, 20, 30}, '' for k, v in pairs(t) do s = s .. k .. v end return s", "110220330"},
		{"local t = {} for i = 1, 40 do t['k' .. i] = i end t[1] = 'a' t[2] = 'b' local n = 0 for k, v in pairs(t) do assert(t[k] == v) n = n + 1 end return n", "42"},
		{"local m = setmetatable({}, {__pairs = function(t) return next, {a = 1}, nil end}) for k, v in pairs(m) do return k .. v end", "a1"},
		{"return os.time{year=2024, month=2, day=29, hour=12} - os.time{year=2024, month=2, day=28, hour=12} == 86400", "true"},
		{"return os.getenv('NO_SUCH_VARIABLE_HERE')", "nil"},
		{"return collectgarbage('count') > 0", "true"},
		{"package.preload.x = function(n) return {name = n} end return require('x').name", "x"},
		{"return require('string') == string and package.loaded.svc == svc", "true"},
	} {
		t.Run(c.body, func(t *testing.T) {
			v, err := eval(t, "return tostring((function() "+c.body+" end)())")
			if err != nil || v != c.want {
				t.Errorf("got %q, %v; want %q", v, err, c.want)
			}
		})
	}
	for _, c := range []struct{ body, want string }{
		{"('x'):rep(1e15)", "resulting string too large"},
		{"('a'):match('[a')", "missing ']'"}, {"('a'):match('%')", "ends with '%'"}, {"('a'):match('(a')", "unfinished capture"},
		{"('a'):match('a)')", "invalid pattern capture"}, {"('a'):gsub('a', '%9')", "invalid capture index"},
		{"('a'):gsub('a', true)", "string/function/table expected"}, {"('%d'):format('x')", "number expected"},
		{"('%d'):format(1.5)", "no integer representation"}, {"('%y'):format(1)", "invalid conversion"},
		{"('%'):format(1)", "invalid conversion"}, {"('%d'):format()", "no value"}, {"('%100d'):format(1)", "too long"},
		{"os.date()", "os.date is not served yet"}, {"utf8.char(1)", "utf8.char is not served yet"},
		{"dofile('x')", "use require"}, {"require('../../etc/x')", "not found"}, {"require('a\\0b')", "not found"},
		{"pairs(nil)", "table expected"},
	} {
		t.Run(c.body, func(t *testing.T) {
			_, err := eval(t, c.body)
			wantText(t, err, "policy.lua:3: ", c.want)
		})
	}
}

func TestFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	with := func(c *Config) { c.Modules = append(c.Modules, Module{Name: "p", Values: []Value{{"path", "", path}}}) }
	for _, c := range []struct{ body, want string }{
		{"return tostring(select(2, io.open(path)))", path + ": no such file or directory"},
		{"local f = io.open(path, 'w') f:write('one\\n', 2, '\\n'):write('3.5 x') return f:close()", "true"},
		{"return io.open(path):read('*a')", "one\n2\n3.5 x"},
		{"local f = io.open(path) local a, b, c, d = f:read('l', 'L', 'n', 2) return a .. '|' .. b .. '|' .. c .. '|' .. d", "one|2\n|3.5| x"},
		{"local f = io.open(path) f:read('a') return tostring(f:read()) .. f:read('a') .. tostring(f:read(1))", "nilnil"},
		{"local s = '' for l in io.lines(path) do s = s .. '[' .. l .. ']' end return s", "[one][2][3.5 x]"},
		{"local s = '' for l in io.open(path):lines() do s = s .. l .. ';' end return s", "one;2;3.5 x;"},
		{"local f = io.open(path) f:read() f:seek('set', 1) local s = f:read() return s .. f:seek()", "ne4"},
		{"local f = io.open(path) f:close() return io.type(f) .. tostring(pcall(f.read, f))", "closed filefalse"},
		{"return io.type(io.stdout) .. tostring(io.type(1))", "filenil"},
		{"local ok, e = pcall(io.open, path, 'q') return e:match('invalid mode')", "invalid mode"},
		{"io.write('a', 1) io.stdout:write('b') return 'ok'", "ok"},
	} {
		v, err := eval(t, "local path = require('p').path return tostring((function() "+c.body+" end)())", with)
		if err != nil || v != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.body, v, err, c.want)
		}
	}
}

func TestHostilePatterns(t *testing.T) {
	start := time.Now()
	_, err := eval(t, "return ('a'):rep(30):find(('a-'):rep(30) .. 'b')")
	wantText(t, err, "policy.lua:3: pattern too complex")
	if d := time.Since(start); d > 10*time.Second {
		t.Errorf("took %v", d)
	}
	v, err := eval(t, "return #('a'):rep(1000000):match('.*')")
	if v != int64(1000000) || err != nil {
		t.Error(v, err)
	}
}

func TestLargeTables(t *testing.T) {
	start := time.Now()
	v, err := eval(t, `local t = {}
for i = 1, 50000 do t['k' .. i] = i end
local n = 0
for k, v in pairs(t) do n = n + v end
return n`)
	if err != nil || v != int64(1250025000) {
		t.Error(v, err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("a walk over 50000 names took %v", d)
	}
}

func TestUpvaluesArePruned(t *testing.T) {
	if findUpvalueList() == nil {
		t.Fatal("the layout of the VM is not the one known: closed upvalues stay in its list")
	}
	f := load(t, `require('svc').on('main', function()
  local n = 0
  for i = 1, 20000 do local a, b = i, i; local f = function() return a - b + 1 end; n = n + f() end
  return n
end)`)
	v, err := f.Call(t.Context(), "main")
	if err != nil || v[0] != int64(20000) {
		t.Fatal(v, err)
	}
	vm := f.gen.Load().spare[0]
	if *f.upvalues.head(vm.l) != nil {
		t.Error("closed upvalues are still listed")
	}
}

func FuzzPolicy(f *testing.F) {
	for _, s := range []string{counting, "return 1", "((((((", "while true do end", "error{}", "require('svc').on('x', print)",
		"local t = setmetatable({}, {__index = error}) return t.x", "#!/bin/x\nprint(1)", "for k in pairs(_G) do print(k) end",
		"goto a ::a::", "return ('%b()'):gsub('(', ')')", "x = [[", "a.b.c = 1", "local function f(...) return f(...) end f(1)"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, policy []byte) {
		fx := newFixture(t, string(policy), func(c *Config) {
			c.CallTimeout = 200 * time.Millisecond
			c.InstructionBudget = 1_000_000
		})
		if err := fx.Load(t.Context()); err != nil && err.Error() == "" {
			t.Error("an error without a text")
		}
	})
}
