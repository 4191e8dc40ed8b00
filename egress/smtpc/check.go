package smtpc

import (
	"context"
	"errors"
	"time"
)

// glance is how long Check waits for input where it cannot look without waiting.
const glance = time.Millisecond

var errUnsolicited = errors.New("the peer spoke or closed while the connection was idle")

// Check says whether the idle connection can be used: a peer that said something, usually 421, or closed it, is gone
// (flows SC-13).
func (k *conn) Check(ctx context.Context) error {
	k.watch(ctx)
	switch {
	case k.broken:
		return errUnsolicited
	case k.r.Buffered() > 0:
		k.broken = true
		return errUnsolicited
	case silent(k.raw):
		return nil
	}
	// Something waits on the socket, or it cannot be seen. Under TLS it may be a session ticket.
	err := k.armRead(glance)
	if err == nil {
		_, err = k.r.ReadReply(limits)
	}
	if err != nil && isTimeout(err) && k.r.Buffered() == 0 && ctx.Err() == nil {
		return nil
	}
	k.broken = true
	return errUnsolicited
}
