package svc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"example.com/svc/mta"
	"example.com/svc/mta/server"
	"example.com/svc/script"
)

// messageFuncs make messages and hand them in.
func (m *module) messageFuncs() []script.Func {
	return []script.Func{
		script.Fn("make_message", "Makes a message in memory, for inject_message; the body has to have CRLF line ends.",
			m.makeMessage, "sender", "recipient", "body"),
		script.Fn("inject_message", "Hands a message made by make_message to the queue; it must not be used afterwards.",
			m.injectMessage, "msg", "deferred_spool?"),
	}
}

// serving returns the server once mail can be handed in. A policy that is being loaded has none, since it is loaded for
// each script state (SV1).
func (m *module) serving(ctx context.Context) (*server.Server, error) {
	if script.Loading(ctx) {
		return nil, fmt.Errorf("%w: call it from a handler", server.ErrNotRunning)
	}
	srv, err := m.b.Server()
	if err != nil {
		return nil, err
	}
	select {
	case <-srv.Started():
		return srv, nil
	default:
		return nil, server.ErrNotRunning
	}
}

func (m *module) makeMessage(ctx context.Context, sender, recipient mta.Address, body []byte) (*mta.Message, error) {
	srv, err := m.serving(ctx)
	if err != nil {
		return nil, fmt.Errorf("make_message: %w", err)
	}
	if recipient.IsNull() {
		return nil, errors.New("make_message: the null address is no recipient")
	}
	msg := srv.Store().New(mta.Envelope{Sender: sender, Recipients: []mta.Address{recipient}}, body)
	m.made.add(msg)
	return msg, nil
}

func (m *module) injectMessage(ctx context.Context, msg *mta.Message, deferred bool) error {
	if deferred {
		return errors.New("inject_message: deferred_spool is not served yet")
	}
	srv, err := m.serving(ctx)
	if err != nil {
		return fmt.Errorf("inject_message: %w", err)
	}
	if !m.made.take(msg) { // SV2
		return errors.New("inject_message: only a message that make_message made can be injected, and only once")
	}
	if err := srv.Inbound().Insert(ctx, msg); err != nil {
		m.made.add(msg) // it is the policy's as before (Q1)
		return fmt.Errorf("inject_message: %w", err)
	}
	script.Forget(ctx, msg) // it has another holder now (M1)
	return nil
}

// drafts are the messages that policies made and did not hand in. It holds names, so that a message that a policy
// forgets can be collected; then it is released.
type drafts struct{ ids sync.Map }

func (d *drafts) add(msg *mta.Message) {
	d.ids.Store(msg.ID(), struct{}{})
	runtime.SetFinalizer(msg, func(msg *mta.Message) {
		d.ids.Delete(msg.ID())
		msg.Release()
	})
}

// take reports whether msg is a draft, which it is no more.
func (d *drafts) take(msg *mta.Message) bool {
	if _, ok := d.ids.LoadAndDelete(msg.ID()); !ok {
		return false
	}
	runtime.SetFinalizer(msg, nil)
	return true
}
