package message

import (
	"context"

	"example.com/svc/mta"
	"example.com/svc/script"
)

func contentMethods() []script.Func {
	return []script.Func{
		script.Fn("get_data", "Returns the whole content.",
			func(ctx context.Context, m *mta.Message) ([]byte, error) { return m.Data(ctx) }),
		script.Fn("set_data", "Replaces the whole content, which has to have CRLF line ends.",
			func(m *mta.Message, payload []byte) { m.SetData(payload) }, "payload"),
	}
}

// spoolMethods write to and free memory.
func spoolMethods() []script.Func {
	return []script.Func{
		script.Fn("save", "Writes what changed to the spool and returns when it is on stable storage.",
			func(ctx context.Context, m *mta.Message) error { return m.Save(ctx) }),
		script.Fn("shrink", "Saves the message if needed and drops content and metadata from memory.",
			func(ctx context.Context, m *mta.Message) error { return m.Shrink(ctx) }),
		script.Fn("shrink_data", "Saves the message if needed and drops the content from memory.",
			func(ctx context.Context, m *mta.Message) error { return m.ShrinkData(ctx) }),
		script.Fn("set_due", "Sets when the next attempt is wanted, nil for now, and returns the time that results.",
			setDue, "due?"),
		script.Fn("set_scheduling", "Limits when the message may be tried; nil clears the limits.", setScheduling, "sched?"),
	}
}
