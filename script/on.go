package script

import (
	"fmt"

	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
)

// loading is what a state knows while it runs the policy.
type loading struct {
	first bool // handlers are collected
}

// on is svc.on(name, fn): it registers a handler while the policy loads (flows CE-6).
func (vm *vm) on(name string, idx int) error {
	place := vm.placeAt(1)
	if vm.loading == nil {
		return fmt.Errorf("on: handlers are registered while the policy loads, not inside a handler")
	}
	fn := vm.l.ToValue(idx)
	i := len(vm.handlers)
	vm.handlers = append(vm.handlers, fn)
	if vm.loading.first {
		h, err := vm.gen.declare(name, place, i)
		if err != nil {
			return err
		}
		vm.gen.handlers = append(vm.gen.handlers, h)
		return nil
	}
	if i >= len(vm.gen.handlers) || vm.gen.handlers[i].name != name {
		return fmt.Errorf("on: %s is not what was registered here when the policy was loaded: registrations must not "+
			"depend on anything that changes", name)
	}
	return nil
}

// declare makes handler i of the generation and checks it against the declaration of the event and the other handlers.
func (g *generation) declare(name, place string, i int) (*handler, error) {
	e := g.eng
	h := &handler{gen: g, name: name, index: i, place: place}
	d, declared := event.Lookup(name)
	if declared && d.Mode == event.Single {
		if err := g.onlyOne(name, place); err != nil {
			return nil, err
		}
	}
	var dp *event.Declaration
	if !declared {
		e.doubt(name, place)
	}
	if declared {
		dp = &d
		var err error
		if h.args, err = e.argPlan(d.Args); err != nil {
			return nil, fmt.Errorf("on: event %s cannot be handled here: %w", name, err)
		}
	}
	e.compileMu.Lock()
	var err error
	h.answer, err = e.comp.answerPlan(name, dp)
	e.compileMu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("on: event %s cannot be handled here: %w", name, err)
	}
	h.started = e.metrics.started.With(name)
	h.latency = e.metrics.latency.With(name)
	return h, nil
}

// doubt warns of a name that no event of the service has, but one is like it. The name may be an event of the policy's
// own, so it is no error (flows CE-6).
func (e *Engine) doubt(name, place string) {
	var names []string
	for _, d := range event.Declarations() {
		names = append(names, d.Name)
	}
	if near := settings.Nearest(name, names); near != "" {
		e.cfg.Log.Warn("no event of the service has this name; the handler runs only if the policy raises it itself",
			"event", name, "at", place, "did_you_mean", near)
	}
}

// onlyOne refuses a second handler of a single-handler event: one of this policy, or one on the bus that is not of the
// generation that is about to be replaced. The error names both places (flows CE-6, choices 4).
func (g *generation) onlyOne(name, place string) error {
	for _, h := range g.handlers {
		if h.name == name {
			return &event.DuplicateError{Event: name, First: h.place, Second: place}
		}
	}
	for _, h := range g.eng.cfg.Bus.Handlers(name) {
		if h.Group != g.eng.cfg.Group {
			return &event.DuplicateError{Event: name, First: h.Source, Second: place}
		}
	}
	return nil
}
