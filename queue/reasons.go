package queue

import "strings"

// reasons is the set of reasons why a message is where it is, in compact form.
type reasons uint16

const (
	whyReceived reasons = 1 << iota
	whyEnumerated
	whyScheduledForLater
	whyDue
	whyLogged
	whyRate
	whyThrottle
	whyFull
	whyFailed
	whySpool
)

var reasonNames = [...]string{Received, Enumerated, ScheduledForLater, DueTimeWasReached, LoggedTransientFailure,
	MessageRateThrottle, ThrottledByThrottleInsertReady, ReadyQueueWasFull, FailedToInsertIntoReadyQueue,
	SpoolUnhealthy}

// list returns the names, and extra at the end unless it is among them.
func (r reasons) list(extra string) []string {
	var names []string
	for i, n := range reasonNames {
		if r&(1<<i) != 0 {
			names = append(names, n)
			if n == extra {
				extra = ""
			}
		}
	}
	if extra != "" {
		names = append(names, extra)
	}
	return names
}

// text joins the names as records show them.
func (r reasons) text(extra string) string { return strings.Join(r.list(extra), ", ") }
