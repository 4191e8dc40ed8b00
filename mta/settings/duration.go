package settings

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Duration is a span of time, never negative when read from settings. A bare number is seconds and may have a
// fraction; a string is one or more spans, each with a unit: "5m", "1 hour", "2m 30s". The zero value is no time.
// Source: value syntaxes, Duration.
type Duration time.Duration

const (
	day   = 24 * time.Hour
	month = 2630016 * time.Second  // 30.44 days
	year  = 31557600 * time.Second // 365.25 days
)

// units are the spellings of each unit; case matters: m is a minute, M a month.
var units = map[string]time.Duration{
	"ns": 1, "nsec": 1,
	"us": time.Microsecond, "usec": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": day, "day": day, "days": day,
	"w": 7 * day, "week": 7 * day, "weeks": 7 * day,
	"M": month, "month": month, "months": month,
	"y": year, "year": year, "years": year,
}

// ParseDuration reads the text form. Every span needs a unit. The error names the text.
func ParseDuration(s string) (time.Duration, error) {
	var total uint64
	rest := strings.Trim(s, " ")
	if rest == "" {
		return 0, badDuration(s, "")
	}
	for rest != "" {
		span, left, hint := parseSpan(rest)
		if hint != nil {
			return 0, badDuration(s, *hint)
		}
		var carry uint64
		if total, carry = bits.Add64(total, span, 0); carry != 0 || total > math.MaxInt64 {
			return 0, badDuration(s, "too long")
		}
		rest = strings.TrimLeft(left, " ")
	}
	return time.Duration(total), nil
}

func badDuration(s, hint string) error {
	if hint != "" {
		hint = ": " + hint
	}
	return fmt.Errorf("invalid duration %q%s", clip(s), hint)
}

// parseSpan reads digits ["." digits] [spaces] unit. hint is not nil on a fault.
func parseSpan(s string) (nanos uint64, rest string, hint *string) {
	fault := func(h string) (uint64, string, *string) { return 0, "", &h }
	whole, s := digits(s)
	if whole == "" {
		return fault("")
	}
	frac := ""
	if strings.HasPrefix(s, ".") {
		if frac, s = digits(s[1:]); frac == "" {
			return fault("")
		}
	}
	s = strings.TrimLeft(s, " ")
	n := strings.IndexFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') })
	if n < 0 {
		n = len(s)
	}
	if n == 0 {
		return fault(`a unit is missing, want for example "` + clip(whole) + `s"`)
	}
	unit, ok := units[s[:n]]
	if !ok {
		return fault(fmt.Sprintf("unknown unit %q", clip(s[:n])))
	}
	nanos, ok = scale(whole, frac, uint64(unit))
	if !ok {
		return fault("too long")
	}
	return nanos, s[n:], nil
}

func digits(s string) (run, rest string) {
	n := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		n = len(s)
	}
	return s[:n], s[n:]
}

// scale computes whole.frac times unit exactly, dropping parts of a nanosecond.
func scale(whole, frac string, unit uint64) (uint64, bool) {
	w, ok := readDigits(whole)
	if !ok {
		return 0, false
	}
	hi, nanos := bits.Mul64(w, unit)
	if hi != 0 {
		return 0, false
	}
	frac = frac[:min(len(frac), 18)]
	f, _ := readDigits(frac)
	div := uint64(1)
	for range frac {
		div *= 10
	}
	hi, lo := bits.Mul64(f, unit)
	part, _ := bits.Div64(hi, lo, div) // f < div, so the quotient is below unit
	nanos, carry := bits.Add64(nanos, part, 0)
	return nanos, carry == 0 && nanos <= math.MaxInt64
}

// readDigits reads decimal digits; an empty run is 0. ok is false beyond 19 digits or 64 bits.
func readDigits(s string) (n uint64, ok bool) {
	s = strings.TrimLeft(s, "0")
	if len(s) > 19 {
		return 0, false
	}
	for i := range len(s) {
		n = n*10 + uint64(s[i]-'0')
	}
	return n, true
}

// FormatDuration gives the printed form: largest to smallest unit, one space apart, as in "2m 52s 800ms" and "1day".
// Zero prints "0s"; a negative span prints a leading "-".
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	u := uint64(d)
	b := make([]byte, 0, 32)
	if d < 0 {
		b = append(b, '-')
		u = -u
	}
	for _, part := range printed {
		n := u / uint64(part.unit)
		if n == 0 {
			continue
		}
		u %= uint64(part.unit)
		if len(b) > 0 && b[len(b)-1] != '-' {
			b = append(b, ' ')
		}
		b = fmt.Append(b, n)
		b = append(b, part.name...)
		if part.plural && n > 1 {
			b = append(b, 's')
		}
	}
	return string(b)
}

var printed = [...]struct {
	unit   time.Duration
	name   string
	plural bool
}{
	{year, "year", true}, {month, "month", true}, {day, "day", true},
	{time.Hour, "h", false}, {time.Minute, "m", false}, {time.Second, "s", false},
	{time.Millisecond, "ms", false}, {time.Microsecond, "us", false}, {1, "ns", false},
}

// D is d as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String gives the printed form, as [FormatDuration].
func (d Duration) String() string { return FormatDuration(time.Duration(d)) }

// MarshalText gives the printed form.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads the text form, as [ParseDuration].
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	if err == nil {
		*d = Duration(v)
	}
	return err
}

// UnmarshalSetting reads a number of seconds or a text form.
func (d *Duration) UnmarshalSetting(v any) error {
	if s, ok := v.(string); ok {
		span, err := ParseDuration(s)
		if err == nil {
			*d = Duration(span)
		}
		return err
	}
	if span, ok := v.(time.Duration); ok {
		if span < 0 {
			return fmt.Errorf("invalid duration %s: must not be negative", span)
		}
		*d = Duration(span)
		return nil
	}
	f, ok := number(v)
	switch {
	case !ok || math.IsNaN(f) || math.IsInf(f, 0):
		return Expected("a duration", v)
	case f < 0:
		return fmt.Errorf("invalid duration %s: must not be negative", numberText(f))
	case f >= math.MaxInt64/1e9:
		return fmt.Errorf("invalid duration %s: too long", numberText(f))
	}
	whole, frac := math.Modf(f)
	*d = Duration(time.Duration(whole)*time.Second + time.Duration(math.Round(frac*1e9)))
	return nil
}

// SettingType is "duration".
func (Duration) SettingType() string { return "duration" }
