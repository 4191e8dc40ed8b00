package message

import (
	"context"
	"errors"
	"fmt"

	"example.com/svc/mta"
	"example.com/svc/script"
)

func envelopeMethods() []script.Func {
	return []script.Func{
		script.Fn("id", "Returns the name of the message: 32 hex digits that begin with its time of reception.",
			func(m *mta.Message) string { return m.ID().String() }),
		script.Fn("sender", "Returns the envelope sender.", func(m *mta.Message) mta.Address { return m.Envelope().Sender }),
		script.Fn("set_sender", "Replaces the envelope sender.", (*mta.Message).SetSender, "address"),
		script.Fn("recipient", "Returns the recipient, a list of them when there are several, nil when there is none.",
			recipient),
		script.Fn("recipient_list", "Returns the list of recipients.", recipients),
		script.Fn("set_recipient", "Replaces the recipients by an address or a list of addresses.", setRecipient, "address"),
		script.Fn("queue_name", "Returns the name of the scheduled queue of the message.",
			func(ctx context.Context, m *mta.Message) (string, error) {
				q, err := m.Queue(ctx)
				return q.String(), err
			}),
		script.Fn("num_attempts", "Returns how many attempts there were.", (*mta.Message).Attempts),
		script.Fn("increment_num_attempts", "Counts one more attempt.",
			func(m *mta.Message) { m.SetAttempts(m.Attempts() + 1) }),
	}
}

func recipients(m *mta.Message) []mta.Address {
	rs := m.Envelope().Recipients
	return append(make([]mta.Address, 0, len(rs)), rs...)
}

func recipient(m *mta.Message) any {
	switch rs := recipients(m); len(rs) {
	case 0:
		return nil
	case 1:
		return rs[0]
	default:
		return rs
	}
}

func setRecipient(m *mta.Message, to any) error {
	list, ok := to.([]any)
	if !ok {
		list = []any{to}
	}
	rs := make([]mta.Address, 0, len(list))
	for _, v := range list {
		a, err := toAddress(v)
		if err != nil {
			return fmt.Errorf("set_recipient: %w", err)
		}
		rs = append(rs, a)
	}
	if len(rs) == 0 {
		return errors.New("set_recipient: the list is empty")
	}
	m.SetRecipients(rs)
	return nil
}

// toAddress reads a recipient, which is never the null address (RFC 5321 section 4.1.1.3).
func toAddress(v any) (a mta.Address, err error) {
	switch v := v.(type) {
	case string:
		if a, err = mta.ParseAddress(v); err != nil {
			return a, err
		}
	case mta.Address:
		a = v
	case *mta.Address:
		a = *v
	default:
		return a, errors.New("an address, a text with one, or a list of these expected")
	}
	if a.IsNull() {
		return a, errors.New("the null address is no recipient")
	}
	return a, nil
}
