package script

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	lua "github.com/Shopify/go-lua"
)

// strFormat is string.format.
func (vm *vm) strFormat(l *lua.State) int {
	f := vm.str(1, "format")
	var b strings.Builder
	arg := 1
	for i := 0; i < len(f); i++ {
		if f[i] != '%' {
			b.WriteByte(f[i])
			continue
		}
		if i++; i < len(f) && f[i] == '%' {
			b.WriteByte('%')
			continue
		}
		start := i
		for i < len(f) && strings.IndexByte("-+ #0123456789.", f[i]) >= 0 {
			i++
		}
		if i >= len(f) {
			return vm.raisef("invalid conversion '%%%s' to 'format'", clip(f[start:]))
		}
		if i-start > 12 || !plainSpec(f[start:i]) {
			return vm.raisef("invalid format (width or precision too long)")
		}
		arg++
		if arg > l.Top() {
			return vm.raisef("bad argument #%d to 'format' (no value)", arg)
		}
		b.WriteString(vm.formatOne(f[start:i], f[i], arg))
		if b.Len() > maxString {
			return vm.raisef("resulting string too large")
		}
	}
	l.PushString(b.String())
	return 1
}

// plainSpec bounds width and precision to two digits.
func plainSpec(s string) bool {
	width, prec, dotted := strings.Cut(strings.TrimLeft(s, "-+ #0"), ".")
	ok := len(width) <= 2 && len(prec) <= 2 && strings.Trim(width+prec, "0123456789") == ""
	return ok && (dotted || prec == "")
}

// formatOne formats argument arg by one conversion.
func (vm *vm) formatOne(spec string, verb byte, arg int) string {
	switch verb {
	case 'd', 'i':
		f := vm.formatNumber(arg)
		if f != math.Trunc(f) || f < -1<<63 || f >= 1<<63 {
			vm.raisef("bad argument #%d to 'format' (number has no integer representation)", arg)
		}
		return formatInt(spec, "d", int64(f))
	case 'u', 'o', 'x', 'X':
		f := vm.formatNumber(arg)
		if f != math.Trunc(f) || f < -1<<63 || f >= 1<<64 {
			vm.raisef("bad argument #%d to 'format' (number has no integer representation)", arg)
		}
		u := uint64(f)
		if f < 0 {
			u = uint64(int64(f))
		}
		if verb == 'u' {
			verb = 'd'
		}
		return fmt.Sprintf("%"+spec+string(verb), u)
	case 'c':
		s := string([]byte{byte(int(vm.formatNumber(arg)))})
		return fmt.Sprintf("%"+spec+"s", s)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		return vm.formatFloat(spec, verb, vm.formatNumber(arg))
	case 'a', 'A':
		return strconv.FormatFloat(vm.formatNumber(arg), 'x', -1, 64)
	case 'q':
		return vm.quote(arg)
	case 's':
		return formatString(spec, vm.tostring(arg))
	}
	vm.raisef("invalid conversion '%%%s%c' to 'format'", spec, verb)
	return ""
}

// formatInt handles a precision as C does: at least so many digits.
func formatInt(spec, verb string, n int64) string {
	return fmt.Sprintf("%"+spec+verb, n)
}

// formatString pads and cuts bytes, not runes.
func formatString(spec, s string) string {
	width, prec, cut := strings.Cut(spec, ".")
	if cut {
		n, _ := strconv.Atoi(prec) // at most two digits; none is 0
		if n < len(s) {
			s = s[:n]
		}
	}
	left := strings.HasPrefix(width, "-")
	n, _ := strconv.Atoi(strings.TrimLeft(width, "-+ #0"))
	if pad := n - len(s); pad > 0 {
		if left {
			return s + strings.Repeat(" ", pad)
		}
		return strings.Repeat(" ", pad) + s
	}
	return s
}

func (vm *vm) formatNumber(arg int) float64 {
	f, ok := vm.l.ToNumber(arg)
	if !ok {
		vm.raisef("bad argument #%d to 'format' (number expected, got %s)", arg, vm.typeName(arg))
	}
	return f
}

// formatFloat writes inf and nan as C does.
func (vm *vm) formatFloat(spec string, verb byte, f float64) string {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return formatString(spec, numberText(f))
	}
	if (verb == 'g' || verb == 'G') && !strings.Contains(spec, ".") {
		spec += ".6" // C has six digits by default, Go as many as are needed
	}
	return fmt.Sprintf("%"+spec+string(verb), f)
}

// quote is %q: a string that Lua reads back.
func (vm *vm) quote(arg int) string {
	s, ok := vm.stringAt(arg)
	if !ok {
		vm.raisef("bad argument #%d to 'format' (string expected, got %s)", arg, vm.typeName(arg))
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\r':
			b.WriteString("\\r")
		case c == 0 || c < 0x20 || c == 0x7f:
			if i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '9' {
				fmt.Fprintf(&b, "\\%03d", c)
			} else {
				fmt.Fprintf(&b, "\\%d", c)
			}
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
