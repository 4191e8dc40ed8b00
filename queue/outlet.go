package queue

import (
	"context"
	"fmt"
	"time"

	"example.com/svc/mta"
)

// Outlet takes due messages. *egress.Manager is one.
type Outlet interface {
	// Take accepts the message behind t, or refuses it. With nil the outlet owns the ticket and finishes or returns it
	// exactly once (Q3), possibly before Take returns. With an error the ticket is void and the message stays with the
	// queue: a [*Busy] puts it back for a while (flows SQ-16), an [*Unroutable] counts as a failed attempt (flows
	// SQ-18), and so does any other error, which is logged (flows SQ-17). Take is called by one goroutine per queue at a
	// time and by many for different queues; it may block on DNS or policies and returns when ctx ends.
	Take(ctx context.Context, t *Ticket) error
}

// Busy says that there is no room for a message now (flows SQ-16).
type Busy struct {
	// Context is the reason the Delayed record shows; empty means [ReadyQueueWasFull].
	Context string
	// Delay is when to try again, at least 1 s. It counts only if HasDelay is set; else the delay is random, up to 60 s.
	Delay    time.Duration
	HasDelay bool
}

// Error returns the reason.
func (b *Busy) Error() string {
	if b.Context == "" {
		return ReadyQueueWasFull
	}
	return b.Context
}

// Unroutable says that no way was found for a message: no source is eligible, or its destination cannot be resolved
// (flows SQ-18). It becomes a TransientFailure record, and the attempt counts.
type Unroutable struct {
	// Response goes to the record; its code is in the 400s.
	Response mta.Response
}

// Error returns the response on one line.
func (u *Unroutable) Error() string { return "unroutable: " + u.Response.String() }

// Return says how a message goes back to its scheduled queue without the outcome of an attempt.
type Return struct {
	// Context is the reason that the Delayed record and the requeue_message event show, such as
	// [ReadyQueueWasSuspended]. Several reasons are joined by ", ".
	Context string
	// Delay is when to try again, if HasDelay is set. Without it the delay is random up to 60 s, or with Increment the
	// one of the retry schedule; Increment ignores Delay.
	Delay    time.Duration
	HasDelay bool
	// Increment counts the attempt and follows the retry schedule (flows SQ-20).
	Increment bool
	// Response, if not nil, is logged as a TransientFailure; else a Delayed record is written.
	Response *mta.Response
	// Record is the template of the TransientFailure record as for [Ticket.Finish]; nil for none.
	Record *mta.Record
}

// Reasons why a message entered a scheduled queue, as records and the requeue_message event show them.
const (
	Received                           = "Received"
	Enumerated                         = "Enumerated"
	ScheduledForLater                  = "ScheduledForLater"
	DueTimeWasReached                  = "DueTimeWasReached"
	LoggedTransientFailure             = "LoggedTransientFailure"
	MessageRateThrottle                = "MessageRateThrottle"
	ThrottledByThrottleInsertReady     = "ThrottledByThrottleInsertReadyQueue"
	ReadyQueueWasFull                  = "ReadyQueueWasFull"
	ReadyQueueWasSuspended             = "ReadyQueueWasSuspended"
	ReadyQueueWasDelayedDueToLowMemory = "ReadyQueueWasDelayedDueToLowMemory"
	MaxReadyWasReducedByConfigUpdate   = "MaxReadyWasReducedByConfigUpdate"
	ConnectionRateThrottled            = "ConnectionRateThrottled"
	FailedToInsertIntoReadyQueue       = "FailedToInsertIntoReadyQueue"
	SpoolUnhealthy                     = "SpoolUnhealthy"
)

// silent reports whether a return for reason passes by requeue_message (events.tsv): messages that a full or suspended
// ready queue did not take were not tried.
func silent(reason string) bool {
	return reason == ReadyQueueWasFull || reason == ReadyQueueWasSuspended
}

// TicketError says that a ticket was finished or returned more than once (Q3).
type TicketError struct {
	// Op is the refused call: "finish", "return" or "corrupt".
	Op string
	// ID is the text of the message ID.
	ID string
}

// Error names the call and the message.
func (e *TicketError) Error() string {
	return fmt.Sprintf("queue: %s of message %s refused: its ticket was finished or returned before", e.Op, e.ID)
}
