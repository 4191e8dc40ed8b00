package settings

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes. In settings it is a plain integer; there is no suffix syntax.
type Size uint64

// UnmarshalSetting reads a whole number that is not negative.
func (s *Size) UnmarshalSetting(v any) error {
	n, ok := Integer(v)
	f, isNumber := number(v)
	switch {
	case ok && n >= 0:
		*s = Size(n)
		return nil
	case isNumber && f < 0:
		return Fault("", "invalid size %s: must not be negative", numberText(f))
	case isNumber && f >= 1<<63:
		return Fault("", "invalid size %s: too large", showNumber(v, f))
	}
	if _, isText := v.(string); isText {
		return Fault("", "expected a size, got %s (sizes are plain integers in bytes)", describeValue(v))
	}
	return Expected("a size", v)
}

// MarshalSetting gives the plain integer.
func (s Size) MarshalSetting() any { return int64(s) }

// SettingType is "size".
func (Size) SettingType() string { return "size" }

// FreeSpace is an amount that must stay free: a share of the whole or a count (bytes or inodes).
// The zero value asks for nothing.
type FreeSpace struct {
	// Percent is the share, 0 to 100. It counts when IsPercent is true.
	Percent uint8
	// Count is the amount otherwise.
	Count uint64
	// IsPercent says which of the two was given.
	IsPercent bool
}

// ParseFreeSpace reads "10%" (a whole number) or a string of digits.
func ParseFreeSpace(s string) (FreeSpace, error) {
	if p, ok := strings.CutSuffix(s, "%"); ok {
		n, err := strconv.ParseUint(p, 10, 8)
		if err != nil || n > 100 {
			return FreeSpace{}, fmt.Errorf("invalid free space %q, want 0%% to 100%%", clip(s))
		}
		return FreeSpace{Percent: uint8(n), IsPercent: true}, nil
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return FreeSpace{}, fmt.Errorf(`invalid free space %q, want for example "10%%" or 1000000`, clip(s))
	}
	return FreeSpace{Count: n}, nil
}

// Enough says whether free out of total satisfies f.
func (f FreeSpace) Enough(free, total uint64) bool {
	if f.IsPercent {
		return float64(free)*100 >= float64(total)*float64(f.Percent)
	}
	return free >= f.Count
}

// String gives "10%" or the plain count.
func (f FreeSpace) String() string {
	if f.IsPercent {
		return strconv.Itoa(int(f.Percent)) + "%"
	}
	return strconv.FormatUint(f.Count, 10)
}

// MarshalSetting gives the percentage as text, a count as an integer.
func (f FreeSpace) MarshalSetting() any {
	if f.IsPercent {
		return f.String()
	}
	return int64(f.Count)
}

// UnmarshalText reads as [ParseFreeSpace].
func (f *FreeSpace) UnmarshalText(text []byte) error {
	v, err := ParseFreeSpace(string(text))
	if err == nil {
		*f = v
	}
	return err
}

// UnmarshalSetting reads a count or a text form.
func (f *FreeSpace) UnmarshalSetting(v any) error {
	if s, ok := v.(string); ok {
		return f.UnmarshalText([]byte(s))
	}
	var n Size
	if _, ok := number(v); !ok {
		return Expected(`a percentage such as "10%" or a count`, v)
	}
	if err := n.UnmarshalSetting(v); err != nil {
		return err
	}
	*f = FreeSpace{Count: uint64(n)}
	return nil
}

// SettingType is "percent|size".
func (FreeSpace) SettingType() string { return "percent|size" }
