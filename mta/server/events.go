package server

import (
	"context"
	"errors"
	"fmt"

	"example.com/svc/mta/event"
)

// Start is the argument of events that have none.
type Start struct{}

var (
	// OnPreInit is raised before init; all handlers run (events.tsv, pre_init).
	OnPreInit = event.Define[Start, event.None]("pre_init", event.Chain)
	// OnInit is raised once, when the configuration is put together (events.tsv, init).
	OnInit = event.Define[Start, event.None]("init", event.Single)
	// OnShutdownLogging is raised when all mail is settled, before the logs are closed (flows SD-4).
	OnShutdownLogging = event.Define[Start, event.None]("shutdown_logging", event.Single)
)

// Prepare raises pre_init and init on bus. An error fails the start.
func Prepare(ctx context.Context, bus event.Bus) error {
	if bus == nil {
		return nil
	}
	// pre_init is a chain whose handlers all run, so each one is asked by itself.
	for _, h := range bus.Handlers(OnPreInit.Name()) {
		if _, err := h.Call(ctx, Start{}); err != nil && !errors.Is(err, event.Pass) {
			return fmt.Errorf("pre_init handler at %s: %w", h.Source, err)
		}
	}
	_, _, err := OnInit.Call(ctx, bus, Start{})
	return err
}
