package script

import (
	"fmt"
	"sync/atomic"
	"time"
)

// poolLimits bound the pool of states. They may change while the engine runs.
type poolLimits struct {
	maxAge   atomic.Int64 // time.Duration
	maxUses  atomic.Int64
	maxSpare atomic.Int64
}

func (p *poolLimits) set(c *Config) {
	p.maxAge.Store(int64(c.MaxAge))
	p.maxUses.Store(int64(c.MaxUses))
	p.maxSpare.Store(int64(c.MaxSpare))
}

func (p *poolLimits) age() time.Duration { return time.Duration(p.maxAge.Load()) }

// SetMaxAge changes how old a pooled state may become, in place of [Config.MaxAge]; 0 means that no state is used again
// (functions.tsv set_max_lua_context_age). It is an error when d is negative. Like the other setters it holds for later
// loads as well and may be called at any time, also by bound functions.
func (e *Engine) SetMaxAge(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("script: maximum age %v is negative", d)
	}
	e.pool.maxAge.Store(int64(d))
	return nil
}

// SetMaxUses changes how many calls a state serves, in place of [Config.MaxUses]; with 0 and 1 each serves one
// (functions.tsv set_max_lua_context_use_count). It is an error when n is negative.
func (e *Engine) SetMaxUses(n int) error {
	if n < 0 {
		return fmt.Errorf("script: maximum use count %d is negative", n)
	}
	e.pool.maxUses.Store(int64(n))
	return nil
}

// SetMaxSpare changes how many idle states are kept, in place of [Config.MaxSpare]; what is over is dropped at once
// (functions.tsv set_max_spare_lua_contexts). It is an error when n is negative.
func (e *Engine) SetMaxSpare(n int) error {
	if n < 0 {
		return fmt.Errorf("script: maximum number of idle states %d is negative", n)
	}
	e.pool.maxSpare.Store(int64(n))
	if g := e.gen.Load(); g != nil {
		g.trim()
	}
	return nil
}

// trim drops the idle states over the limit: those used least.
func (g *generation) trim() {
	g.mu.Lock()
	n := max(0, len(g.spare)-int(g.eng.pool.maxSpare.Load()))
	kept := copy(g.spare, g.spare[n:])
	clear(g.spare[kept:])
	g.spare = g.spare[:kept]
	g.mu.Unlock()
	g.eng.metrics.spare.Add(float64(-n))
	g.eng.metrics.alive.Add(float64(-n))
}
