package script

import (
	"io"
	"log/slog"
	"time"

	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
)

// Defaults of [Config].
const (
	// DefaultMaxAge is how old a pooled state may become (flows CE-4).
	DefaultMaxAge = 300 * time.Second
	// DefaultMaxUses is how many calls a pooled state serves (flows CE-4).
	DefaultMaxUses = 1024
	// DefaultMaxSpare is how many idle states are kept (flows CE-4).
	DefaultMaxSpare = 8192
	// DefaultCallTimeout is how long one call may run.
	DefaultCallTimeout = 30 * time.Second
)

// Config is what an [Engine] obeys. Either Path or Source is needed; zero values of the rest mean the defaults.
type Config struct {
	// Path is the policy file. Files it requires are looked for beside it.
	Path string
	// Source is the text of the policy when there is no file; Name is what errors call it, "policy.lua" when empty.
	Source []byte
	Name   string
	// Modules are what the policy can require.
	Modules []Module
	// Bus is where handlers are registered. A bus with the method Replace of [event.Local] can be loaded again.
	Bus event.Bus
	// Group names the handlers of this engine on the bus; "lua" when empty. Two engines on one bus need two names.
	Group string
	// Prefix is the name of the main module; "svc" when empty.
	Prefix string
	// Log gets what policies cannot be told: panics and refused loads. Nil is slog.Default.
	Log *slog.Logger
	// Metrics is where the instruments are declared; nil leaves them unexposed.
	Metrics *metric.Set
	// Output is where print writes; nil is the standard output.
	Output io.Writer
	// Getenv is what os.getenv of policies asks, such as os.LookupEnv; nil means that every variable is unset.
	Getenv func(name string) (value string, ok bool)
	// MaxAge, MaxUses and MaxSpare bound the pool of states (flows CE-4); [Engine.SetMaxAge] and the others change them.
	MaxAge   time.Duration
	MaxUses  int
	MaxSpare int
	// CallTimeout bounds the time of one call, without the time spent in Go functions that take a context. Negative
	// means no bound; the context of the caller holds anyway.
	CallTimeout time.Duration
	// InstructionBudget bounds the VM instructions of one call, to the next multiple of 10,000; 0 means no bound.
	InstructionBudget int64
}

func (c Config) withDefaults() Config {
	if c.Group == "" {
		c.Group = "lua"
	}
	if c.Prefix == "" {
		c.Prefix = "svc"
	}
	if c.Name == "" {
		c.Name = "policy.lua"
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.MaxAge == 0 {
		c.MaxAge = DefaultMaxAge
	}
	if c.MaxUses == 0 {
		c.MaxUses = DefaultMaxUses
	}
	if c.MaxSpare == 0 {
		c.MaxSpare = DefaultMaxSpare
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	return c
}
