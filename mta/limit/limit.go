package limit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/svc/mta/settings"
)

// Limit is a limit spec: how many may be going on at once. The zero value is no limit and is refused by keepers.
// Source: flows TH-6.
type Limit struct {
	// N is greater than 0.
	N uint64
	// Local keeps the count in this process even where limits are shared between nodes.
	Local bool
}

// ParseLimit reads ["local:"] count; the count may contain "," and "_".
func ParseLimit(s string) (Limit, error) {
	count, local := strings.CutPrefix(s, localPrefix)
	n, ok := parseCount(count)
	if !ok {
		return Limit{}, fmt.Errorf(`invalid limit %q, want for example 32 or "local:1,000"`, clip(s))
	}
	return Limit{N: n, Local: local}, nil
}

// UnmarshalSetting reads a whole number or a text form.
func (l *Limit) UnmarshalSetting(v any) error {
	if s, ok := v.(string); ok {
		return l.UnmarshalText([]byte(s))
	}
	n, ok := settings.Integer(v)
	switch {
	case !ok:
		return settings.Expected("a limit", v)
	case n <= 0:
		return fmt.Errorf("invalid limit %d: must be greater than 0", n)
	}
	*l = Limit{N: uint64(n)}
	return nil
}

// UnmarshalText reads as [ParseLimit].
func (l *Limit) UnmarshalText(text []byte) error {
	v, err := ParseLimit(string(text))
	if err == nil {
		*l = v
	}
	return err
}

// String gives the printed form: the count, with "local:" before it if set.
func (l Limit) String() string {
	s := strconv.FormatUint(l.N, 10)
	if l.Local {
		return localPrefix + s
	}
	return s
}

// MarshalSetting gives an integer, or the printed form of a local limit.
func (l Limit) MarshalSetting() any {
	if l.Local || l.N > 1<<63-1 {
		return l.String()
	}
	return int64(l.N)
}

// MarshalText gives the printed form.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// SettingType is "limit-spec".
func (Limit) SettingType() string { return "limit-spec" }

// IsZero says whether no limit is set.
func (l Limit) IsZero() bool { return l == Limit{} }

// NamedLimit is a limit and the name it is counted under.
type NamedLimit struct {
	Key   string
	Limit Limit
}

// SortLimits puts limits in the order in which they are leased: smallest first (E3).
func SortLimits(ls []NamedLimit) { slices.SortStableFunc(ls, compareLimits) }

func compareLimits(a, b NamedLimit) int { return cmp.Compare(a.Limit.N, b.Limit.N) }
