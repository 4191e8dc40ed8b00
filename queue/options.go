package queue

import (
	"log/slog"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/limit"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
)

// Options are what a [Manager] is made of.
type Options struct {
	// Store keeps the messages. Required.
	Store *mta.Store
	// Bus answers the questions of events.go; nil for defaults.
	Bus event.Bus
	// Outlet takes due messages. Required.
	Outlet Outlet
	// Recorder writes records down. Required.
	Recorder mta.Recorder
	// Keeper keeps max_message_rate; nil for one of this manager.
	Keeper limit.Keeper
	// Epoch tells when configurations of the strategy Epoch are asked for again; nil for never.
	Epoch *settings.Epoch
	// Metrics shows the instruments; nil for none.
	Metrics *metric.Set
	// Log is nil for the default logger.
	Log *slog.Logger
	// PromoteWorkers bounds how many queues are offered to the outlet at once; 0 means 128.
	PromoteWorkers int
	// RecoverWorkers is how many goroutines place the messages found at start; 0 means half the processors.
	RecoverWorkers int
	// ResidentBytes bounds the bodies kept in memory for immediate delivery; beyond it bodies leave the memory at once
	// and are loaded when needed. 0 means 64 MiB.
	ResidentBytes int64
	// DeliverWhenSpoolUnhealthy goes on delivering while the spool refuses writes. The zero value delays deliveries
	// (flows SQ-10).
	DeliverWhenSpoolUnhealthy bool
}

var _ mta.Inbound = (*Manager)(nil)
