package script

import (
	"strings"
	"testing"
)

// What the package comment lists of the standard library is all there is.
func TestStandardLibrary(t *testing.T) {
	const want = `_G: _G _VERSION assert bit32 collectgarbage coroutine dofile error getmetatable io ipairs load loadfile math next os package pairs pcall print rawequal rawget rawlen rawset require select setmetatable string table tonumber tostring type unpack utf8 xpcall
table: concat insert pack remove sort unpack
string: byte char dump find format gmatch gsub len lower match rep reverse sub upper
math: abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log max min modf pi pow rad random randomseed sin sinh sqrt tan tanh tointeger type
bit32: arshift band bnot bor btest bxor extract lrotate lshift replace rrotate rshift
os: clock date difftime getenv remove rename setlocale time tmpname
io: close input lines open output read stderr stdout tmpfile type write
coroutine: create isyieldable resume running status wrap yield
utf8: char codepoint codes len offset
package: config loaded path preload`
	v, err := eval(t, `local out = {}
for _, lib in ipairs{'_G', 'table', 'string', 'math', 'bit32', 'os', 'io', 'coroutine', 'utf8', 'package'} do
  local names = {}
  for k in pairs(_G[lib]) do names[#names + 1] = k end
  table.sort(names)
  out[#out + 1] = lib .. ': ' .. table.concat(names, ' ')
end
return table.concat(out, '\n')`)
	if err != nil || v != want {
		t.Errorf("%v\n%v", err, v)
	}
	for _, name := range strings.Fields(`dofile loadfile coroutine.create coroutine.isyieldable coroutine.resume coroutine.running
		coroutine.status coroutine.wrap coroutine.yield utf8.char utf8.codepoint utf8.codes utf8.len utf8.offset string.dump
		os.date os.setlocale io.close io.input io.output io.read io.tmpfile`) {
		_, err := eval(t, name+"('x')")
		wantText(t, err, "policy.lua:3: "+name+" is not served")
	}
}
