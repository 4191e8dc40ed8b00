package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// Mode says how many handlers an event may have and how they combine (spec events.tsv, column multiple_handlers).
type Mode uint8

const (
	// Single allows one handler on a bus; a second registration is an error that names both places.
	Single Mode = iota
	// Chain allows several handlers. They run in order of registration until one answers.
	Chain
)

// Pass is returned by a handler that has no answer: the next handler is asked, or the default applies.
//
//lint:ignore ST1012 Pass is an answer that happens to travel as an error
var Pass = errors.New("event: pass")

// None is the answer type of events whose handlers only agree or object.
type None struct{}

// Handler is one registered handler in untyped form.
type Handler struct {
	// Source is the place of registration, such as "policy.lua:12", for error texts.
	Source string
	// Group names the generation a handler belongs to. Handlers of one group are replaced together with
	// [Local.Replace]. Empty for handlers that stay.
	Group string
	// Call answers with a value of the event's answer type, with [Pass], or with an error. A nil value without an
	// error is the zero answer. Call may run on many goroutines at once.
	Call func(ctx context.Context, args any) (any, error)
}

// Bus finds handlers by event name. Implementations are safe for concurrent use, and the slice that Handlers returns
// is never changed afterwards.
type Bus interface {
	Register(name string, h Handler) error
	Handlers(name string) []Handler
}

// DuplicateError reports a second handler for an event that allows one.
type DuplicateError struct {
	Event         string
	First, Second string // sources
}

// Error names the event and both places.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%s event already has a handler defined at %s; %s cannot add another", e.Event, e.First, e.Second)
}

// Local is the in-process [Bus]. The zero value is ready for use and allows several handlers for each name; the mode
// is enforced by [Event.On] and by whoever registers untyped handlers through [Check].
// Lookups take no lock.
type Local struct {
	mu   sync.Mutex // serialises writers
	snap atomic.Pointer[map[string][]Handler]
}

// Register adds h at the end of the handlers of name. It returns an error if h has no Call.
func (b *Local) Register(name string, h Handler) error {
	if h.Call == nil {
		return fmt.Errorf("event: handler for %s at %s has no function", name, h.Source)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.clone()
	next[name] = append(next[name][:len(next[name]):len(next[name])], h)
	b.snap.Store(&next)
	return nil
}

// Handlers returns the handlers of name in order of registration; nil when there is none.
func (b *Local) Handlers(name string) []Handler {
	m := b.snap.Load()
	if m == nil {
		return nil
	}
	return (*m)[name]
}

// Replace removes all handlers of group and adds those of next in one step: a caller of Handlers sees either the old
// or the new set. The group of the added handlers is set to group.
func (b *Local) Replace(group string, next map[string][]Handler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := make(map[string][]Handler)
	for name, hs := range b.clone() {
		for _, h := range hs {
			if h.Group != group {
				m[name] = append(m[name], h)
			}
		}
	}
	for name, hs := range next {
		for _, h := range hs {
			h.Group = group
			m[name] = append(m[name], h)
		}
	}
	b.snap.Store(&m)
}

// Names returns the names that have at least one handler, in no particular order.
func (b *Local) Names() []string {
	m := b.snap.Load()
	if m == nil {
		return nil
	}
	names := make([]string, 0, len(*m))
	for n, hs := range *m {
		if len(hs) > 0 {
			names = append(names, n)
		}
	}
	return names
}

func (b *Local) clone() map[string][]Handler {
	m := b.snap.Load()
	next := make(map[string][]Handler)
	if m != nil {
		for k, v := range *m {
			next[k] = v
		}
	}
	return next
}
