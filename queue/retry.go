package queue

import (
	"math/rand/v2"
	"time"
)

// maxBackoff bounds the growth of a delay without max_retry_interval.
const maxBackoff = 10 * 365 * 24 * time.Hour

// backoff is the delay after the failure of attempt n, counted from 0, without jitter: retry_interval doubled n times,
// at most max_retry_interval, in whole seconds and at least one (flows SQ-20).
func (c *Config) backoff(n int) time.Duration {
	limit := maxBackoff
	if c.MaxRetryInterval != nil {
		limit = min(limit, time.Duration(*c.MaxRetryInterval))
	}
	d := time.Duration(c.RetryInterval)
	for ; n > 0 && d < limit; n-- {
		d *= 2 // d is below ten years, so this cannot overflow
	}
	return max(min(d, limit).Truncate(time.Second), time.Second)
}

// jitter is uniform in [-m/2, +m/2) with m = min(retry_interval/20, 60 s), truncated to whole seconds (flows SQ-20).
func (c *Config) jitter() time.Duration {
	m := min(time.Duration(c.RetryInterval)/20, time.Minute)
	if m <= 0 {
		return 0
	}
	return (rand.N(m) - m/2).Truncate(time.Second)
}

// shortDelay is the delay of messages that were not attempted: random from 0 to 60 s (flows SQ-16, SQ-22).
func shortDelay() time.Duration { return rand.N(time.Minute) }

// infer counts how many consecutive delays without jitter fit in the age (flows SP-4), and returns the sum of the delays
// 1 to attempts-1 (flows SP-5).
func (c *Config) infer(age time.Duration) (attempts int, sum time.Duration) {
	const most = 0xffff
	var elapsed time.Duration
	for attempts < most {
		d := c.backoff(attempts)
		if elapsed+d > age {
			break
		}
		elapsed += d
		if attempts > 0 {
			sum += d
		}
		attempts++
		if d == c.backoff(attempts) { // no growth from here on
			more := min(int((age-elapsed)/d), most-attempts)
			attempts += more
			sum += time.Duration(more) * d
			break
		}
	}
	// The last fitting delay follows attempt attempts-1, so the sum runs to attempts-1 inclusive.
	return attempts, sum
}

// shrinkFor returns what leaves the memory when a message is due after d (flows SQ-9).
func (c *Config) shrinkFor(d time.Duration) Shrink {
	p := ShrinkDataAndMeta
	for i := range c.ShrinkPolicy {
		if d >= time.Duration(c.ShrinkPolicy[i].Interval) {
			p = c.ShrinkPolicy[i].Policy
		}
	}
	return p
}
