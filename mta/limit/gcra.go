package limit

import (
	"cmp"
	"math/bits"
	"time"
)

// instant is a point or span of time: ns nanoseconds and frac/Count of one, where Count is that of the rate.
// Fractions make 3/s exact: three takes move the tat by one second, neither more nor less.
type instant struct {
	ns   int64
	frac uint64
}

// times gives n intervals of r. The caller made sure that it fits.
func (r Rate) times(n uint64) instant {
	hi, lo := bits.Mul64(n, uint64(r.Period))
	q, rem := bits.Div64(hi, lo, r.Count)
	return instant{int64(q), rem}
}

// plus adds two instants whose fractions are out of count.
func (a instant) plus(b instant, count uint64) instant {
	ns := a.ns + b.ns
	frac, carry := bits.Add64(a.frac, b.frac, 0)
	if carry != 0 || frac >= count {
		frac -= count
		ns++
	}
	return instant{ns, frac}
}

// minus subtracts b, which is not after a, from a.
func (a instant) minus(b instant, count uint64) instant {
	ns := a.ns - b.ns
	frac, borrow := bits.Sub64(a.frac, b.frac, 0)
	if borrow != 0 {
		frac += count
		ns--
	}
	return instant{ns, frac}
}

func (a instant) compare(b instant) int {
	return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.frac, b.frac))
}

// up is the instant in whole nanoseconds, rounded up.
func (a instant) up() time.Duration {
	if a.frac > 0 {
		return time.Duration(a.ns + 1)
	}
	return time.Duration(a.ns)
}

// gcra applies the generic cell rate algorithm of flows TH-2 and TH-3 to a stored tat at the time now.
// next is the tat to store; it is stored only when the result is not throttled. n is at most the burst.
func gcra(tat, now instant, r Rate, n uint64) (next instant, res Result) {
	if tat.compare(now) < 0 {
		tat = now
	}
	horizon := now.plus(r.times(r.burst()), r.Count)
	next = tat.plus(r.times(n), r.Count)
	res.Limit = r.burst()
	if next.compare(horizon) > 0 {
		res.Throttled = true
		res.Wait = next.minus(horizon, r.Count).up()
		res.RetryAfter = wholeSeconds(res.Wait)
		next = tat
	}
	if next.compare(horizon) <= 0 {
		res.Remaining = r.intervals(horizon.minus(next, r.Count))
	}
	res.ResetAfter = wholeSeconds(next.minus(now, r.Count).up())
	return next, res
}

// intervals is how many whole intervals of r fit in a span that is no longer than its burst.
func (r Rate) intervals(span instant) uint64 {
	hi, lo := bits.Mul64(uint64(span.ns), r.Count)
	lo, carry := bits.Add64(lo, span.frac, 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(r.Period))
	return q
}

func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}
