package svc

import (
	"context"
	"errors"
	"math"
	"runtime"
	"time"

	"example.com/svc/script"
)

func (m *module) processFuncs() []script.Func {
	return []script.Func{
		script.Fn("bump_config_epoch", "Makes everything that refreshes by epoch ask for its settings again.",
			m.b.Bump),
		script.Fn("available_parallelism", "Returns how many processors the service may use.", m.parallelism),
		script.Fn("sleep", "Waits for a number of seconds.", sleep, "seconds"),
	}
}

func (m *module) parallelism() int {
	if m.o.Parallelism > 0 {
		return m.o.Parallelism
	}
	return runtime.GOMAXPROCS(0)
}

// sleep waits until the time has passed or the call is over.
func sleep(ctx context.Context, seconds float64) error {
	if math.IsNaN(seconds) || seconds < 0 || seconds > math.MaxInt64/float64(time.Second) {
		return errors.New("sleep: want a number of seconds that is not negative")
	}
	t := time.NewTimer(time.Duration(seconds * float64(time.Second)))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
