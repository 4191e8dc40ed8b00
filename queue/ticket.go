package queue

import (
	"context"
	"sync"
	"sync/atomic"

	"example.com/svc/mta"
	"example.com/svc/spool"
)

// Slot is a place for what an outlet remembers about a scheduled queue, such as the state of its round robin (flows
// SS). It lives as long as the queue; the queue never looks inside. The zero value is empty and ready for use. It is
// safe for concurrent use.
type Slot struct {
	mu sync.Mutex
	v  any
}

// Load returns what is kept; nil at first.
func (s *Slot) Load() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v
}

// Store keeps v.
func (s *Slot) Store(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v = v
}

// LoadOrStore returns what is kept. If nothing is kept it keeps what fresh returns; fresh runs under the lock of the
// slot and must not block.
func (s *Slot) LoadOrStore(fresh func() any) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.v == nil {
		s.v = fresh()
	}
	return s.v
}

// lender is who lent a ticket.
type lender interface {
	finish(ctx context.Context, t *Ticket, rec *mta.Record, rs []mta.Result) error
	noteAttempt(ctx context.Context, t *Ticket, rec *mta.Record, r mta.Result)
	giveBack(ctx context.Context, t *Ticket, r Return) error
	corrupt(ctx context.Context, t *Ticket, cause error) error
	twice(t *Ticket, op string)
}

// Ticket is the loan of a message to an [Outlet]. It ends with exactly one of [Ticket.Finish], [Ticket.Return] and
// [Ticket.Corrupt] (Q3); a further call changes nothing and is a [*TicketError]. Until then the outlet holds the
// message (M1).
type Ticket struct {
	// Message is what is lent.
	Message *mta.Message
	// Name is the scheduled queue, and Queue its text.
	Name  mta.QueueName
	Queue string
	// Config is what the scheduled queue obeys at the time of the loan. It is never nil and read-only.
	Config *Config
	// Selector is the outlet's place in the scheduled queue, shared by all its tickets. It is never nil.
	Selector *Slot

	lender lender
	q      *scheduled
	it     item
	done   atomic.Bool
	noted  []mta.Result // of tickets made by NewTicket
}

// Noted returns the results that were noted on a ticket made by [NewTicket].
func (t *Ticket) Noted() []mta.Result { return t.noted }

// ID returns the name of the message; it may be asked after the ticket ended.
func (t *Ticket) ID() spool.ID { return t.Message.ID() }

// end marks the ticket as used; false when it was before.
func (t *Ticket) end(op string) error {
	if t.done.Swap(true) {
		if t.lender != nil {
			t.lender.twice(t, op)
		}
		return &TicketError{Op: op, ID: t.Message.ID().String()}
	}
	return nil
}

// Finish ends the ticket with the outcome of an attempt. rec is the template of the records (Site, Peer, SourceAddress,
// EgressPool, EgressSource, DeliveryProtocol, TLS, SessionID, Provider, Classification); nil means none. One record is
// written for each result, with its recipients; a result without recipients concerns all that the message has.
// Delivered and failed recipients leave the message. When none is left the message leaves the spool after its records
// were accepted (Q2); Finish returns when that is handed over, not when it is done. Otherwise the message is saved with
// the remaining recipients and goes back with the attempt counted (flows SC-25, SQ-19 to SQ-21).
// The error is a [*TicketError]; all else is dealt with here. ctx bounds policies and saves.
func (t *Ticket) Finish(ctx context.Context, rec *mta.Record, rs []mta.Result) error {
	if err := t.end("finish"); err != nil {
		return err
	}
	return t.lender.finish(ctx, t, rec, rs)
}

// Note writes the record of an attempt that failed and is followed by another one at once, with the ticket still out
// (flows SC-27). It changes nothing about the message. rec and r are as those of Finish.
func (t *Ticket) Note(ctx context.Context, rec *mta.Record, r mta.Result) {
	if !t.done.Load() {
		t.lender.noteAttempt(ctx, t, rec, r)
	}
}

// Return ends the ticket of a message that was not attempted, or that is to be delayed as a whole. Its errors are
// those of [Ticket.Finish].
func (t *Ticket) Return(ctx context.Context, r Return) error {
	if err := t.end("return"); err != nil {
		return err
	}
	return t.lender.giveBack(ctx, t, r)
}

// Corrupt ends the ticket of a message whose data cannot be read back ([spool.CorruptError], [spool.ErrNotFound]): its
// records are set aside, a Bounce 550 5.6.0 is written, and it leaves the memory. Its errors are those of
// [Ticket.Finish].
func (t *Ticket) Corrupt(ctx context.Context, cause error) error {
	if err := t.end("corrupt"); err != nil {
		return err
	}
	return t.lender.corrupt(ctx, t, cause)
}

// NewTicket makes a ticket that is not lent by a queue, for testing an outlet. finish and ret are called at most once
// together; Corrupt calls finish with a failed result; Noted returns what was noted. A nil cfg means the defaults.
func NewTicket(m *mta.Message, name mta.QueueName, cfg *Config,
	finish func(ctx context.Context, rec *mta.Record, rs []mta.Result) error,
	ret func(ctx context.Context, r Return) error) *Ticket {
	if cfg == nil {
		cfg = defaultConfig()
	}
	return &Ticket{Message: m, Name: name, Queue: name.String(), Config: cfg, Selector: new(Slot),
		lender: funcLender{finish, ret}}
}

// funcLender lends the tickets of NewTicket.
type funcLender struct {
	fin func(context.Context, *mta.Record, []mta.Result) error
	ret func(context.Context, Return) error
}

func (l funcLender) finish(ctx context.Context, _ *Ticket, rec *mta.Record, rs []mta.Result) error {
	return l.fin(ctx, rec, rs)
}

func (l funcLender) giveBack(ctx context.Context, _ *Ticket, r Return) error { return l.ret(ctx, r) }

func (l funcLender) corrupt(ctx context.Context, _ *Ticket, cause error) error {
	return l.fin(ctx, nil, []mta.Result{{Response: corruptResponse(cause), Disposition: mta.Failed}})
}

func (funcLender) noteAttempt(_ context.Context, t *Ticket, _ *mta.Record, r mta.Result) {
	t.noted = append(t.noted, r)
}

func (funcLender) twice(*Ticket, string) {}
