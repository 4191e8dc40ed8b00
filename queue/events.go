package queue

import (
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
)

// RequeueMessage is the question before a message goes back to a scheduled queue.
type RequeueMessage struct {
	// Message may be moved to another queue by its metadata.
	Message *mta.Message `arg:"message"`
	// Response is the reply that caused it, on one line.
	Response string `arg:"smtp_response"`
	// Context is the list of reasons.
	Context []string `arg:"insert_context"`
	// Increment says that the attempt will be counted.
	Increment bool `arg:"increment_attempts"`
	// Delay is the wanted delay; nil when the retry schedule or chance decides.
	Delay *time.Duration `arg:"delay,opt"`
}

// Questions that scheduled queues ask (events.tsv).
var (
	// GetConfig asks what a queue obeys, when it is first used and when it is refreshed. The default is the default
	// configuration; an error fails the resolve, or keeps the old configuration at a refresh. Internal queues are not
	// asked about.
	GetConfig = event.Define[mta.QueueName, *Config]("get_queue_config", event.Chain)

	// OnRequeue is asked before a message goes back after a transient failure or delay. A [*mta.Rejection] bounces the
	// message; any other error is logged and the queue stays the same (flows SQ-19).
	OnRequeue = event.Define[RequeueMessage, event.None]("requeue_message", event.Chain)

	// OnThrottleInsertReady is asked before a due message is offered to the outlet. A handler that moves the due time
	// of the message into the future sends it back (flows SQ-14); an error counts as a failed attempt.
	OnThrottleInsertReady = event.Define[*mta.Message, event.None]("throttle_insert_ready_queue", event.Chain)

	// OnSpoolEnumerated is asked once for each message found at start. An error ends the start (flows SP-3).
	OnSpoolEnumerated = event.Define[*mta.Message, event.None]("spool_message_enumerated", event.Single)
)
