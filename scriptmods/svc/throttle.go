package svc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/limit"
	"example.com/svc/script"
)

// userPrefix keeps the names of policies apart from those of queues and paths.
const userPrefix = "user:"

// throttle is a rate under a name (flows TH-9). It is immutable and safe for concurrent use.
type throttle struct {
	keeper limit.Keeper
	name   string
	rate   limit.Rate
}

func (m *module) throttleFuncs() []script.Func {
	return []script.Func{
		script.Fn("make_throttle", "Makes a throttle; those with equal name and spec share one count.",
			func(name string, spec limit.Rate) (*throttle, error) {
				if name == "" {
					return nil, errors.New("make_throttle: the name is empty")
				}
				return &throttle{keeper: m.keeper, name: name, rate: spec}, nil
			}, "name", "spec"),
	}
}

func (m *module) throttleTypes() []script.TypeDecl {
	return []script.TypeDecl{
		script.Type[throttle]("throttle", "A rate under a name.",
			script.Fn("throttle", "Counts one operation if it is permitted and tells the outcome.", take),
			script.Fn("sleep_if_throttled", "Counts one operation, waiting until it is permitted; true if it had to wait.",
				sleepUntil),
			script.Fn("delay_message_if_throttled",
				"Counts one operation, or moves the due time of the message to when it would be permitted and returns true.",
				delay, "msg"),
			script.Fn("explain", "Describes rate and burst in words.", (*throttle).explain),
		),
		script.Type[limit.Result]("throttleresult", "The outcome of counting one operation.",
			script.Get("throttled", "Is true when the operation must not proceed.",
				func(r *limit.Result) bool { return r.Throttled }),
			script.Get("limit", "Is how many operations are permitted at once.", func(r *limit.Result) uint64 { return r.Limit }),
			script.Get("remaining", "Is how many operations are permitted now.",
				func(r *limit.Result) uint64 { return r.Remaining }),
			script.Get("reset_after", "Is the time in seconds until nothing counts any more.",
				func(r *limit.Result) time.Duration { return r.ResetAfter }),
			script.Get("retry_after", "Is the time in seconds until the operation is permitted, nil when it was.",
				func(r *limit.Result) *time.Duration {
					if !r.Throttled {
						return nil
					}
					return &r.RetryAfter
				}),
		),
	}
}

func (t *throttle) key() string { return userPrefix + t.name }

func take(ctx context.Context, t *throttle) (*limit.Result, error) {
	res, err := t.keeper.Take(ctx, t.key(), t.rate, 1)
	if err != nil {
		return nil, fmt.Errorf("throttle %q: %w", t.name, err)
	}
	return &res, nil
}

func sleepUntil(ctx context.Context, t *throttle) (bool, error) {
	slept, err := limit.TakeWait(ctx, t.keeper, t.key(), t.rate, 1)
	if err != nil {
		return slept, fmt.Errorf("throttle %q: %w", t.name, err)
	}
	return slept, nil
}

func delay(ctx context.Context, t *throttle, msg *mta.Message) (bool, error) {
	res, err := take(ctx, t)
	if err != nil || !res.Throttled {
		return false, err
	}
	msg.SetDue(time.Now().Add(res.RetryAfter))
	return true, nil
}

func (t *throttle) explain() string {
	burst := t.rate.Burst
	if burst == 0 {
		burst = t.rate.Count
	}
	s := fmt.Sprintf("%d in %v, up to %d at once", t.rate.Count, t.rate.Period, burst)
	if t.rate.Local {
		s += ", counted by this process alone"
	}
	return s
}
