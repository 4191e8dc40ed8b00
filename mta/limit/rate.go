package limit

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxBurstTime bounds burst times interval: how long a used up burst may take to come back.
const MaxBurstTime = 100 * 365 * 24 * time.Hour

// Rate is a throttle spec: Count operations per Period, up to Burst of them at once.
// The zero value is no rate and is refused by keepers. Source: flows TH-1.
type Rate struct {
	// Count is greater than 0.
	Count uint64
	// Period is a number of whole seconds when it comes from text.
	Period time.Duration
	// Burst is how many may happen at once; 0 means Count.
	Burst uint64
	// Local keeps the count in this process even where rates are shared between nodes.
	Local bool
}

const (
	localPrefix = "local:"
	burstWord   = ",max_burst="
	day         = 24 * time.Hour
)

// periodUnits are the spellings of a unit in a rate. "seconds" and other plurals are none.
var periodUnits = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour,
	"d": day, "day": day,
}

// ParseRate reads ["local:"] count "/" [digits] unit [",max_burst=" count]. Counts may contain "," and "_".
func ParseRate(s string) (Rate, error) {
	r, ok := parseRate(s)
	if !ok {
		return Rate{}, fmt.Errorf(`invalid rate %q, want for example "100/s"`, clip(s))
	}
	if err := r.Check(); err != nil {
		return Rate{}, fmt.Errorf("invalid rate %q: %w", clip(s), err)
	}
	return r, nil
}

func parseRate(s string) (r Rate, ok bool) {
	s, r.Local = strings.CutPrefix(s, localPrefix)
	count, rest, ok := strings.Cut(s, "/")
	if !ok {
		return r, false
	}
	if r.Count, ok = parseCount(count); !ok {
		return r, false
	}
	period, burst, hasBurst := strings.Cut(rest, burstWord)
	if hasBurst {
		if r.Burst, ok = parseCount(burst); !ok {
			return r, false
		}
	}
	r.Period, ok = parsePeriod(period)
	return r, ok
}

// parseCount reads digits that may contain separators; the value is greater than 0.
func parseCount(s string) (uint64, bool) {
	if strings.ContainsAny(s, ",_") {
		s = strings.NewReplacer(",", "", "_", "").Replace(s)
	}
	n, ok := parseDigits(s)
	return n, ok && n > 0
}

func parseDigits(s string) (uint64, bool) {
	if s == "" || s[0] < '0' || s[0] > '9' { // ParseUint itself refuses signs of any other kind
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func parsePeriod(s string) (time.Duration, bool) {
	unit := strings.TrimLeft(s, "0123456789")
	base, ok := periodUnits[unit]
	if !ok {
		return 0, false
	}
	if len(unit) == len(s) {
		return base, true
	}
	n, ok := parseDigits(s[:len(s)-len(unit)])
	if !ok || n == 0 || n > uint64(MaxBurstTime/base) {
		return 0, false
	}
	return time.Duration(n) * base, true
}

// Check says whether keepers can serve r.
func (r Rate) Check() error {
	if r.Count == 0 || r.Period <= 0 {
		return fmt.Errorf("a rate needs a count and a period above 0")
	}
	hi, lo := bits.Mul64(r.burst(), uint64(r.Period))
	if hi >= r.Count {
		return fmt.Errorf("max_burst is too large for this rate")
	}
	if q, _ := bits.Div64(hi, lo, r.Count); q > uint64(MaxBurstTime) {
		return fmt.Errorf("max_burst is too large for this rate")
	}
	return nil
}

// burst is the effective burst.
func (r Rate) burst() uint64 {
	if r.Burst == 0 {
		return r.Count
	}
	return r.Burst
}

// PerSecond is the rate in operations per second.
func (r Rate) PerSecond() float64 {
	if r.Period <= 0 {
		return 0
	}
	return float64(r.Count) / r.Period.Seconds()
}

// IsZero says whether no rate is set.
func (r Rate) IsZero() bool { return r == Rate{} }

// Compare orders rates from the smallest to the largest, equal ones by burst (flows TH-8).
func (r Rate) Compare(o Rate) int {
	// Count/Period against o.Count/o.Period, without rounding.
	ahi, alo := bits.Mul64(r.Count, uint64(max(o.Period, 0)))
	bhi, blo := bits.Mul64(o.Count, uint64(max(r.Period, 0)))
	if c := cmp.Or(cmp.Compare(ahi, bhi), cmp.Compare(alo, blo)); c != 0 {
		return c
	}
	return cmp.Compare(r.burst(), o.burst())
}

// String gives the printed form: "local:" if set, plain count, "/", one letter s, m, h or d (other periods in seconds),
// ",max_burst=N" if given. The zero value prints "".
func (r Rate) String() string {
	if r.IsZero() {
		return ""
	}
	b := make([]byte, 0, 32)
	if r.Local {
		b = append(b, localPrefix...)
	}
	b = strconv.AppendUint(b, r.Count, 10)
	b = append(b, '/')
	switch r.Period {
	case time.Second:
		b = append(b, 's')
	case time.Minute:
		b = append(b, 'm')
	case time.Hour:
		b = append(b, 'h')
	case day:
		b = append(b, 'd')
	default:
		b = strconv.AppendFloat(b, r.Period.Seconds(), 'f', -1, 64)
		b = append(b, 's')
	}
	if r.Burst != 0 {
		b = append(b, burstWord...)
		b = strconv.AppendUint(b, r.Burst, 10)
	}
	return string(b)
}

// MarshalText gives the printed form.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads as [ParseRate].
func (r *Rate) UnmarshalText(text []byte) error {
	v, err := ParseRate(string(text))
	if err == nil {
		*r = v
	}
	return err
}

// SettingType is "throttle-spec".
func (Rate) SettingType() string { return "throttle-spec" }

// Named is a rate and the name it is counted under.
type Named struct {
	Key  string
	Rate Rate
}

// SortRates puts rates in the order in which they are asked: smallest first (E3). TakeAll does not allocate for sorted
// ones.
func SortRates(rs []Named) { slices.SortStableFunc(rs, compareNamed) }

func compareNamed(a, b Named) int { return a.Rate.Compare(b.Rate) }

// clip bounds what an error repeats of its input.
func clip(s string) string {
	const most = 60
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
