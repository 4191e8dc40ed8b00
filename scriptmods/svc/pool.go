package svc

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"example.com/svc/script"
)

// poolFuncs steer the pool of script states of the engine that calls them (flows CE-4).
func poolFuncs() []script.Func {
	return []script.Func{
		script.Fn("set_max_lua_context_age", "Sets the age in seconds after which a script state is not used again.",
			poolSetter("set_max_lua_context_age", func(e *script.Engine, seconds int64) error {
				if seconds > math.MaxInt64/int64(time.Second) {
					return errors.New("the number of seconds is too large")
				}
				return e.SetMaxAge(time.Duration(seconds) * time.Second)
			}), "seconds"),
		script.Fn("set_max_lua_context_use_count", "Sets after how many calls a script state is not used again.",
			poolSetter("set_max_lua_context_use_count", func(e *script.Engine, limit int64) error {
				return e.SetMaxUses(int(min(limit, math.MaxInt32)))
			}), "limit"),
		script.Fn("set_max_spare_lua_contexts", "Sets how many idle script states are kept.",
			poolSetter("set_max_spare_lua_contexts", func(e *script.Engine, limit int64) error {
				return e.SetMaxSpare(int(min(limit, math.MaxInt32)))
			}), "limit"),
	}
}

// poolSetter makes a function of a policy of a setter of the engine.
func poolSetter(name string, set func(*script.Engine, int64) error) func(context.Context, int64) error {
	return func(ctx context.Context, n int64) error {
		e := script.EngineFrom(ctx)
		if e == nil {
			return fmt.Errorf("%s: no policy called", name)
		}
		if n < 0 {
			return fmt.Errorf("%s: %d is negative", name, n)
		}
		if err := set(e, n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
}
