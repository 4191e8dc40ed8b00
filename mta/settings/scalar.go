package settings

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Integer reads a whole number from a plain value: any Go integer, or a float without a fraction (Lua numbers are
// floats). ok is false for everything else, numbers outside int64 included.
func Integer(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case float64:
		if v != math.Trunc(v) || v < -1<<63 || v >= 1<<63 {
			return 0, false
		}
		return int64(v), true
	case int:
		return int64(v), true
	}
	rv := reflect.ValueOf(v)
	switch {
	case !rv.IsValid():
	case rv.CanInt():
		return rv.Int(), true
	case rv.CanUint():
		return int64(rv.Uint()), rv.Uint() <= math.MaxInt64
	case rv.CanFloat() && rv.Type().Kind() == reflect.Float32:
		return Integer(rv.Float())
	}
	return 0, false
}

// number reads any number as a float.
func number(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	rv := reflect.ValueOf(v)
	switch {
	case !rv.IsValid():
	case rv.CanInt():
		return float64(rv.Int()), true
	case rv.CanUint():
		return float64(rv.Uint()), true
	case rv.CanFloat():
		return rv.Float(), true
	}
	return 0, false
}

func decodeBool(d *decoder, v any, dst reflect.Value) {
	var place Place
	v = unwrap(v, &place)
	b, ok := v.(bool)
	if !ok {
		d.expected("a bool", v)
		return
	}
	dst.SetBool(b)
}

func decodeString(d *decoder, v any, dst reflect.Value) {
	var place Place
	v = unwrap(v, &place)
	s, ok := v.(string)
	if !ok {
		if rv := reflect.ValueOf(v); rv.IsValid() && rv.Kind() == reflect.String {
			dst.SetString(rv.String())
			return
		}
		d.expected("a string", v)
		return
	}
	dst.SetString(s)
}

func decodeInt(d *decoder, v any, dst reflect.Value) {
	var place Place
	v = unwrap(v, &place)
	n, ok := Integer(v)
	if !ok {
		d.notInteger(v, math.MaxInt64)
		return
	}
	if dst.OverflowInt(n) {
		limit := int64(1)<<(dst.Type().Bits()-1) - 1
		if n < 0 {
			d.faultf("%d is too small, the lowest is %d", n, -limit-1)
			return
		}
		d.faultf("%d is too large, the highest is %d", n, limit)
		return
	}
	dst.SetInt(n)
}

func decodeUint(d *decoder, v any, dst reflect.Value) {
	var place Place
	v = unwrap(v, &place)
	u, ok := v.(uint64)
	if f, isFloat := v.(float64); isFloat && f >= 1<<63 && f < 1<<64 {
		u, ok = uint64(f), true
	}
	if !ok {
		n, whole := Integer(v)
		if !whole {
			d.notInteger(v, math.MaxUint64)
			return
		}
		if n < 0 {
			d.faultf("%d is too small, the lowest is 0", n)
			return
		}
		u = uint64(n)
	}
	if dst.OverflowUint(u) {
		d.faultf("%d is too large, the highest is %d", u, uint64(1)<<dst.Type().Bits()-1)
		return
	}
	dst.SetUint(u)
}

func (d *decoder) notInteger(v any, highest uint64) {
	f, ok := number(v)
	switch {
	case !ok || math.IsNaN(f) || math.IsInf(f, 0) || f != math.Trunc(f):
		d.expected("an int", v)
	case f < 0:
		d.faultf("%s is too small", showNumber(v, f))
	default:
		d.faultf("%s is too large, the highest is %d", showNumber(v, f), highest)
	}
}

func decodeFloat(d *decoder, v any, dst reflect.Value) {
	var place Place
	v = unwrap(v, &place)
	f, ok := number(v)
	if !ok || math.IsNaN(f) {
		d.expected("a number", v)
		return
	}
	if dst.OverflowFloat(f) {
		d.faultf("%s is too large", numberText(f))
		return
	}
	dst.SetFloat(f)
}

// decodeDuration serves fields of type time.Duration with the syntax of [Duration].
func decodeDuration(d *decoder, v any, dst reflect.Value) {
	var place Place
	v = unwrap(v, &place)
	if own(v, dst) {
		return
	}
	var span Duration
	if err := span.UnmarshalSetting(v); err != nil {
		d.refuse(err)
		return
	}
	dst.SetInt(int64(time.Duration(span)))
}

func enumCodec(values []string) codec {
	return func(d *decoder, v any, dst reflect.Value) {
		var place Place
		v = unwrap(v, &place)
		if own(v, dst) {
			v = dst.String()
		}
		s, ok := v.(string)
		if !ok {
			d.expected("one of "+strings.Join(values, ", "), v)
			return
		}
		if err := checkEnum(s, values); err != nil {
			d.refuse(err)
			return
		}
		dst.SetString(s)
	}
}

func checkEnum(s string, values []string) error {
	if slices.Contains(values, s) {
		return nil
	}
	return &Error{
		Msg:        fmt.Sprintf("invalid value %q, want one of %s", clip(s), strings.Join(values, ", ")),
		Suggestion: Nearest(s, values),
	}
}

// describeValue says what a value is, for "expected an int, got ...".
func describeValue(v any) string {
	switch v := Plain(v).(type) {
	case nil:
		return "nil"
	case string:
		return "a string " + strconv.Quote(clip(v))
	case bool:
		return "a bool " + strconv.FormatBool(v)
	case map[string]any:
		return "a table"
	case []any:
		return "a list"
	default:
		if f, ok := number(v); ok {
			return "a number " + showNumber(v, f)
		}
		return fmt.Sprintf("a %T", v)
	}
}

// showNumber prints v, whose float is f.
func showNumber(v any, f float64) string {
	if u, ok := v.(uint64); ok {
		return strconv.FormatUint(u, 10)
	}
	return numberText(f)
}

func numberText(f float64) string {
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatInt(int64(f), 10)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// maxShown bounds how much of a value an error repeats.
const maxShown = 60

func clip(s string) string {
	if len(s) <= maxShown {
		return s
	}
	n := maxShown
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
