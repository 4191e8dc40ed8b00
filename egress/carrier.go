package egress

import (
	"context"
	"errors"

	"example.com/svc/egress/route"
	"example.com/svc/mta"
)

// Path says where one connection goes and for whom.
type Path struct {
	// Queue is the name of the ready queue.
	Queue string
	// Source is where it comes from.
	Source *Source
	// Site and Protocol name the destination.
	Site, Protocol string
	// Target is the host to connect to, and Port the port in force (flows SC-7).
	Target route.Target
	Port   uint16
	// Hello is the name this host goes by (flows SC-10).
	Hello string
	// AvoidTLS says that TLS was broken a while ago: the opportunistic modes act as if it was not offered (flows TL-8).
	AvoidTLS bool
}

// Opener opens connections for one protocol. It is safe for concurrent use.
type Opener interface {
	// Open connects to p.Target and makes the connection ready for messages. Its error is a [*TLSError] when TLS is to
	// blame. ctx bounds Open only.
	Open(ctx context.Context, p *Path, c *PathConfig) (Carrier, error)
}

// Carrier is one open connection. It belongs to one goroutine.
type Carrier interface {
	// Info tells who is at both ends; it does not change.
	Info() Info
	// Check says whether a connection that was idle can still be used (flows SC-13).
	Check(ctx context.Context) error
	// Deliver sends m, whose data is in memory, to rs and adds what was answered to out; every one of rs is named in
	// out. An error is an internal one: nothing was sent, and the connection is as it was. When ctx ends the
	// connection is broken at once.
	Deliver(ctx context.Context, m *mta.Message, rs []mta.Address, out *Outcome) error
	// Close says goodbye, if the connection is not broken, and closes.
	Close() error
}

// Info is what records show of a connection.
type Info struct {
	// Peer is the host at the other end, SourceAddress this end, and TLS what was settled; nil where unknown.
	Peer          *mta.Peer
	SourceAddress *mta.SourceAddress
	TLS           *mta.TLSInfo
	// Protocol is the delivery protocol of records, such as "ESMTP".
	Protocol string
}

// Stage is the step of a transaction that was answered.
type Stage uint8

// The stages.
const (
	// StageLocal is no answer of a peer but a finding of ours.
	StageLocal Stage = iota
	// StageMail is the sender.
	StageMail
	// StageRcpt is one recipient.
	StageRcpt
	// StageData is the request to send content.
	StageData
	// StageDot is the end of the content.
	StageDot
)

// Reply is an answer and whom it concerns.
type Reply struct {
	// Recipients are those it concerns. The slice may be part of what Deliver was given.
	Recipients []mta.Address
	// Response is the answer.
	Response mta.Response
	// Stage is what it answers.
	Stage Stage
	// Index is the place of the first recipient in the transaction.
	Index int
}

// Outcome collects the answers of one transaction.
type Outcome struct {
	// Replies are the answers, one for each group of recipients.
	Replies []Reply
	// Broken says that the connection can carry no more messages: it failed, or the peer said 421.
	Broken bool
	// Transport says that it broke without an answer or a timeout (flows SC-27).
	Transport bool
}

// Reset empties o for another transaction.
func (o *Outcome) Reset() {
	clear(o.Replies)
	o.Replies, o.Broken, o.Transport = o.Replies[:0], false, false
}

// Add adds an answer for rs.
func (o *Outcome) Add(stage Stage, index int, rs []mta.Address, r mta.Response) {
	if len(rs) > 0 {
		o.Replies = append(o.Replies, Reply{Recipients: rs, Response: r, Stage: stage, Index: index})
	}
}

// TLSError says that a host was not used because of TLS: not offered, the handshake failed, or what followed it.
type TLSError struct {
	// Handshake says that TLS was offered and broke; else it was not offered though required.
	Handshake bool
	// Err is the cause.
	Err error
}

// Error returns the cause.
func (e *TLSError) Error() string { return "TLS: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *TLSError) Unwrap() error { return e.Err }

// brokenTLS reports whether err is a handshake that failed (flows TL-8).
func brokenTLS(err error) bool {
	var e *TLSError
	return errors.As(err, &e) && e.Handshake
}
