package script

import (
	"math"
	"strings"

	lua "github.com/Shopify/go-lua"
)

// maxString bounds strings that library functions make.
const maxString = 256 << 20

// openString replaces the functions that the VM lacks or has wrong: patterns, and text taken for UTF-8.
func (vm *vm) openString() {
	vm.extend("string", map[string]lua.Function{
		"find":    func(l *lua.State) int { return vm.strFind(true) },
		"match":   func(l *lua.State) int { return vm.strFind(false) },
		"gmatch":  vm.strGmatch,
		"gsub":    vm.strGsub,
		"rep":     vm.strRep,
		"reverse": vm.strReverse,
		"lower":   func(l *lua.State) int { return vm.strMap('A', 'Z', 'a'-'A') },
		"upper":   func(l *lua.State) int { return vm.strMap('a', 'z', 'A'-'a') },
		"format":  vm.strFormat,
		"dump":    func(*lua.State) int { return vm.raisef("string.dump is not served") },
	})
}

// str is string argument i.
func (vm *vm) str(i int, fn string) string {
	s, ok := vm.stringAt(i)
	if !ok {
		vm.raisef("bad argument #%d to '%s' (string expected, got %s)", i, fn, vm.typeName(i))
	}
	return s
}

// strMap moves ASCII letters; other bytes stay, as in the C locale.
func (vm *vm) strMap(from, to byte, by int) int {
	name := "lower"
	if from == 'a' {
		name = "upper"
	}
	s := vm.str(1, name)
	i := strings.IndexFunc(s, func(r rune) bool { return r >= rune(from) && r <= rune(to) })
	if i < 0 {
		vm.l.PushString(s)
		return 1
	}
	b := []byte(s)
	for ; i < len(b); i++ {
		if b[i] >= from && b[i] <= to {
			b[i] = byte(int(b[i]) + by)
		}
	}
	vm.l.PushString(string(b))
	return 1
}

func (vm *vm) strReverse(l *lua.State) int {
	b := []byte(vm.str(1, "reverse"))
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	l.PushString(string(b))
	return 1
}

func (vm *vm) strRep(l *lua.State) int {
	s, sep := vm.str(1, "rep"), ""
	n := lua.CheckNumber(l, 2)
	if !l.IsNoneOrNil(3) {
		sep = vm.str(3, "rep")
	}
	if !(n >= 1) {
		l.PushString("")
		return 1
	}
	if size := float64(len(s)+len(sep)) * n; size > maxString || n > math.MaxInt32 {
		return vm.raisef("resulting string too large")
	}
	count := int(n)
	if sep == "" {
		l.PushString(strings.Repeat(s, count))
	} else {
		l.PushString(strings.Repeat(s+sep, count-1) + s)
	}
	return 1
}

// startAt reads the init argument at idx: a byte offset, -1 when it lies behind the end.
func (vm *vm) startAt(idx, length int) int {
	init := lua.OptInteger(vm.l, idx, 1)
	switch {
	case init < 0:
		init = max(length+init+1, 1)
	case init == 0:
		init = 1
	}
	if init > length+1 {
		return -1
	}
	return init - 1
}

// strFind is string.find and string.match.
func (vm *vm) strFind(find bool) int {
	name := "match"
	if find {
		name = "find"
	}
	l := vm.l
	s, p := vm.str(1, name), vm.str(2, name)
	start := vm.startAt(3, len(s))
	if start < 0 {
		l.PushNil()
		return 1
	}
	if find && (l.ToBoolean(4) || !strings.ContainsAny(p, "^$*+?.([%-")) {
		i := strings.Index(s[start:], p)
		if i < 0 {
			l.PushNil()
			return 1
		}
		l.PushInteger(start + i + 1)
		l.PushInteger(start + i + len(p))
		return 2
	}
	m := newMatcher(vm, s, p)
	from, to := m.search(start)
	switch {
	case from < 0:
		l.PushNil()
		return 1
	case find:
		l.PushInteger(from + 1)
		l.PushInteger(to)
		return 2 + m.pushCaptures(from, to, false)
	}
	return m.pushCaptures(from, to, true)
}

// strGmatch is string.gmatch(s, pattern).
func (vm *vm) strGmatch(l *lua.State) int {
	s, p := vm.str(1, "gmatch"), vm.str(2, "gmatch")
	pos := 0
	l.PushGoFunction(func(l *lua.State) int {
		m := newMatcher(vm, s, p)
		m.anchor = false // a caret has no meaning here
		for ; pos <= len(s); pos++ {
			if end := m.tryAt(pos); end >= 0 {
				from := pos
				pos = end
				if end == from {
					pos++
				}
				return m.pushCaptures(from, end, true)
			}
		}
		l.PushNil()
		return 1
	})
	return 1
}

// strGsub is string.gsub(s, pattern, replacement, n).
func (vm *vm) strGsub(l *lua.State) int {
	s, p := vm.str(1, "gsub"), vm.str(2, "gsub")
	switch l.TypeOf(3) {
	case lua.TypeString, lua.TypeNumber, lua.TypeTable, lua.TypeFunction:
	default:
		return vm.raisef("bad argument #3 to 'gsub' (string/function/table expected, got %s)", vm.typeName(3))
	}
	limit := len(s) + 1
	if !l.IsNoneOrNil(4) {
		limit = lua.CheckInteger(l, 4)
	}
	m := newMatcher(vm, s, p)
	var b []byte
	pos, n := 0, 0
	for n < limit {
		end := m.tryAt(pos)
		if end >= 0 {
			n++
			b = append(b, m.replacement(pos, end)...)
		}
		switch {
		case end > pos:
			pos = end
		case pos < len(s):
			b = append(b, s[pos])
			pos++
		default:
			pos = len(s) + 1
		}
		if len(b) > maxString {
			return vm.raisef("resulting string too large")
		}
		if pos > len(s) || m.anchor {
			break
		}
	}
	if pos < len(s) {
		b = append(b, s[pos:]...)
	}
	l.PushString(string(b))
	l.PushInteger(n)
	return 2
}
