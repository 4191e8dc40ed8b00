package queue

import (
	"context"
	"testing"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/settings"
	"pgregory.net/rapid"
)

func TestBackoff(t *testing.T) {
	plain := settings.New[Config]()
	t.Run("SQ-24 default timetable", func(t *testing.T) {
		var at time.Duration
		for n, want := range []int{0, 20, 60, 140, 300, 620, 1260} {
			if got := at / time.Minute; int(got) != want {
				t.Errorf("attempt %d at %d min, want %d", n, got, want)
			}
			at += plain.backoff(n)
		}
	})
	for _, c := range []struct {
		name       string
		retry, max time.Duration
		n          int
		want       time.Duration
	}{
		{"SQ-20 first failure", time.Minute, 0, 0, time.Minute},
		{"SQ-20 doubled", time.Minute, 0, 3, 8 * time.Minute},
		{"SQ-20 max_retry_interval", time.Minute, 5 * time.Minute, 3, 5 * time.Minute},
		{"SQ-20 max below retry_interval", time.Minute, 30 * time.Second, 0, 30 * time.Second},
		{"SQ-20 equal means no growth", time.Minute, time.Minute, 60000, time.Minute},
		{"SQ-20 whole seconds", 1500 * time.Millisecond, 0, 0, time.Second},
		{"SQ-20 whole seconds after doubling", 1500 * time.Millisecond, 0, 1, 3 * time.Second},
		{"SQ-20 at least one second", time.Millisecond, 0, 0, time.Second},
		{"SQ-20 no overflow", time.Hour, 0, 60000, maxBackoff},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := settings.New(func(x *Config) { x.RetryInterval = dur(c.retry) })
			if c.max != 0 {
				cfg.MaxRetryInterval = new(dur(c.max))
			}
			if got := cfg.backoff(c.n); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// SQ-20: jitter is uniform in [-m/2, +m/2), m = min(retry_interval/20, 60 s), truncated to whole seconds.
func TestJitter(t *testing.T) {
	for _, c := range []struct {
		retry, half time.Duration
	}{{20 * time.Minute, 30 * time.Second}, {24 * time.Hour, 30 * time.Second}, {4 * time.Minute, 6 * time.Second},
		{10 * time.Second, 0}, {0, 0}} {
		cfg := Config{RetryInterval: dur(c.retry)}
		seen := map[time.Duration]int{}
		for range 4000 {
			j := cfg.jitter()
			if j%time.Second != 0 || j < -c.half || j > c.half || c.half > 0 && j == c.half {
				t.Fatalf("retry_interval %v: jitter %v", c.retry, j)
			}
			seen[j]++
		}
		if want := 2*int(c.half/time.Second) - 1; c.half > 0 && len(seen) < want {
			t.Errorf("retry_interval %v: %d different values, want %d", c.retry, len(seen), want)
		}
	}
}

func TestInfer(t *testing.T) {
	plain := settings.New[Config]()
	for _, c := range []struct {
		age      time.Duration
		attempts int
		sum      time.Duration
	}{
		{0, 0, 0},
		{19 * time.Minute, 0, 0},
		{20 * time.Minute, 1, 0},
		{59 * time.Minute, 1, 0},
		{60 * time.Minute, 2, 40 * time.Minute},
		{140 * time.Minute, 3, 120 * time.Minute},
	} {
		if n, sum := plain.infer(c.age); n != c.attempts || sum != c.sum {
			t.Errorf("SP-4 age %v: %d attempts, sum %v; want %d, %v", c.age, n, sum, c.attempts, c.sum)
		}
	}
}

// SP-4, SP-5 by their definition, for any settings.
func TestInferModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{RetryInterval: dur(time.Duration(rapid.Int64Range(1, 3600).Draw(t, "retry")) * time.Second)}
		if rapid.Bool().Draw(t, "bounded") {
			cfg.MaxRetryInterval = new(dur(time.Duration(rapid.Int64Range(1, 7200).Draw(t, "max")) * time.Second))
		}
		age := time.Duration(rapid.Int64Range(0, 40000).Draw(t, "age")) * time.Second
		n, sum, elapsed := 0, time.Duration(0), time.Duration(0)
		for elapsed+cfg.backoff(n) <= age {
			elapsed += cfg.backoff(n)
			n++
		}
		for i := 1; i < n; i++ {
			sum += cfg.backoff(i)
		}
		if gotN, gotSum := cfg.infer(age); gotN != n || gotSum != sum {
			t.Fatalf("%d attempts, sum %v; want %d, %v", gotN, gotSum, n, sum)
		}
	})
}

func TestShrinkFor(t *testing.T) {
	steps := []ShrinkStep{{dur(0), NoShrink}, {dur(time.Minute), ShrinkData}, {dur(time.Hour), ShrinkDataAndMeta},
		{dur(2 * time.Hour), ShrinkData}}
	for _, c := range []struct {
		steps []ShrinkStep
		d     time.Duration
		want  Shrink
	}{
		{nil, time.Second, ShrinkDataAndMeta},
		{steps[1:], time.Second, ShrinkDataAndMeta},
		{steps, 0, NoShrink},
		{steps, time.Minute, ShrinkData},
		{steps, time.Hour, ShrinkDataAndMeta},
		{steps, 3 * time.Hour, ShrinkData},
	} {
		cfg := Config{ShrinkPolicy: c.steps}
		if got := cfg.shrinkFor(c.d); got != c.want {
			t.Errorf("SQ-9 due in %v: %s, want %s", c.d, got, c.want)
		}
	}
}

func TestRetryAt(t *testing.T) {
	const age = 6 * 24 * time.Hour
	day := 24 * time.Hour
	for _, c := range []struct {
		name     string
		attempts int
		expires  time.Duration // from now; 0 for none
		first    time.Duration // first_attempt from now
		b        back
		maxAge   time.Duration
		late     bool
		min, max time.Duration // of the delay
		counted  bool
	}{
		{name: "SQ-20 schedule", b: back{increment: true}, attempts: 2, maxAge: 7 * day,
			min: 80*time.Minute - 30*time.Second, max: 80*time.Minute + 30*time.Second, counted: true},
		{name: "SQ-20 increment ignores a delay", b: back{increment: true, delay: time.Second, hasDelay: true},
			maxAge: 7 * day, min: 19 * time.Minute, max: 21 * time.Minute, counted: true},
		{name: "SQ-21 past max_age", b: back{increment: true}, attempts: 10, maxAge: 7 * day, late: true, counted: true},
		{name: "SQ-21 expires replaces max_age", b: back{increment: true}, attempts: 10, maxAge: day,
			expires: 30 * day, min: 14 * day, max: 15 * day, counted: true},
		{name: "SQ-21 due at expires", b: back{increment: true}, maxAge: 7 * day, expires: 19 * time.Minute,
			late: true, counted: true},
		{name: "SQ-22 given delay", b: back{delay: time.Hour, hasDelay: true}, maxAge: 7 * day,
			min: time.Hour, max: time.Hour},
		{name: "SQ-22 random delay", maxAge: 7 * day, max: time.Minute},
		{name: "SQ-22 age at due is max_age", b: back{delay: day, hasDelay: true}, maxAge: 7 * day, late: true},
		{name: "SQ-22 just below", b: back{delay: day - time.Second, hasDelay: true}, maxAge: 7 * day,
			min: day - time.Second, max: day - time.Second},
		{name: "SQ-22 expires alone counts", b: back{delay: time.Hour, hasDelay: true}, maxAge: day,
			expires: 2 * time.Hour, min: time.Hour, max: time.Hour},
		{name: "SQ-22 past expires", b: back{delay: 2 * time.Hour, hasDelay: true}, maxAge: 7 * day,
			expires: 2 * time.Hour, late: true},
		{name: "SQ-25 first_attempt moves due", b: back{delay: time.Minute, hasDelay: true}, maxAge: 7 * day,
			first: time.Hour, min: time.Hour - time.Minute, max: time.Hour},
		{name: "SQ-25 moved past expires", b: back{delay: time.Minute, hasDelay: true}, maxAge: 7 * day,
			first: 3 * time.Hour, expires: 2 * time.Hour, late: true},
	} {
		bubble(t, c.name, func(t *testing.T) {
			r := newRig(t, outlet(deliver))
			r.config(func(x *Config) { x.MaxAge = dur(c.maxAge) })
			msg := r.msg("a@b.example")
			msg.SetAttempts(c.attempts)
			if c.expires != 0 || c.first != 0 {
				s := &mta.Scheduling{}
				if c.expires != 0 {
					s.Expires = time.Now().Add(c.expires)
				}
				if c.first != 0 {
					s.FirstAttempt = time.Now().Add(c.first)
				}
				msg.SetScheduling(s)
			}
			q, err := r.m.queueOf(context.Background(), msg)
			if err != nil {
				t.Fatal(err)
			}
			now, due, late := r.m.retryAt(q, &item{m: msg, born: r.m.now() - int64(age)}, c.b)
			if (late != "") != c.late {
				t.Fatalf("expiry is %q", late)
			}
			if d := due.Sub(now); !c.late && (d < c.min || d > c.max) {
				t.Errorf("delay %v, want %v to %v", d, c.min, c.max)
			}
			if got := msg.Attempts() - c.attempts; got == 1 != c.counted {
				t.Errorf("attempts grew by %d", got)
			}
		})
	}
}
