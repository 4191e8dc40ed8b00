package journal

import (
	"example.com/svc/mta"
	"example.com/svc/mta/event"
)

// FilterArgs is what a filter event is asked with (logs.md section 5).
type FilterArgs struct {
	// Message is the message the record is about.
	Message *mta.Message
}

// FilterEvent returns the event that the setting filter_event names. The answer true logs the record; false, no
// answer, no handler and an error do not.
func FilterEvent(name string) *event.Event[FilterArgs, bool] {
	return event.Dynamic[FilterArgs, bool](name, event.Single)
}
