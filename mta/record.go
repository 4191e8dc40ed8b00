package mta

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"example.com/svc/spool"
)

// RecordType is the type of a log record (logs.md section 2).
type RecordType string

// Record types.
const (
	Reception        RecordType = "Reception"
	Delivery         RecordType = "Delivery"
	Bounce           RecordType = "Bounce"
	TransientFailure RecordType = "TransientFailure"
	Expiration       RecordType = "Expiration"
	AdminBounce      RecordType = "AdminBounce"
	AdminRebind      RecordType = "AdminRebind"
	Delayed          RecordType = "Delayed"
	RejectionRecord  RecordType = "Rejection"
	OOB              RecordType = "OOB"
	Feedback         RecordType = "Feedback"
	XferOut          RecordType = "XferOut"
	XferIn           RecordType = "XferIn"
	DeferredRebind   RecordType = "DeferredInjectionRebind"
)

// RecordTypes lists all types that are logged.
var RecordTypes = []RecordType{Reception, Delivery, Bounce, TransientFailure, Expiration, AdminBounce, AdminRebind,
	Delayed, RejectionRecord, OOB, Feedback, XferOut, XferIn, DeferredRebind}

// Peer is the other end of a connection as records show it.
type Peer struct {
	// Name is the EHLO name of a client or the host name of a server; "" when there is none.
	Name string
	// Addr is the address of the peer.
	Addr netip.Addr
	// Secure says that the name was found by validated DNS.
	Secure bool
}

// SourceAddress is the local end of an outgoing connection.
type SourceAddress struct {
	// Address is the bound address; the port is 0 when unknown.
	Address netip.AddrPort
	// Protocol is "socks5" or "haproxy" when a proxy was used, and Server its address.
	Protocol string
	Server   string
}

// TLSInfo is what a TLS handshake settled.
type TLSInfo struct {
	// Version is in the form "TLSv1.3".
	Version string
	// Cipher is the IANA name of the cipher suite.
	Cipher string
	// PeerName is the subject of the peer's verified certificate as "KEY=value" entries; may be empty.
	PeerName []string
}

// Record is one fact about a message or a session, as the log shows it (logs.md section 1). The journal adds the node
// id and the selected metadata and headers. A record is read-only once passed to a [Recorder].
type Record struct {
	Type       RecordType
	ID         spool.ID
	Sender     string
	Recipients []string
	// Queue is the scheduled queue name, Site the ready queue name.
	Queue, Site string
	Size        int
	Response    Response
	Peer        *Peer
	// Time is when it happened; the zero value means now. Created is when the message was received; the zero value
	// means the time of ID, or Time without an ID.
	Time, Created time.Time
	// Attempts does not count the attempt the record is about.
	Attempts int
	// Classification is the bounce class; "" is logged as "Uncategorized".
	Classification           string
	EgressPool, EgressSource string
	SourceAddress            *SourceAddress
	// DeliveryProtocol and ReceptionProtocol are logged as null when empty.
	DeliveryProtocol, ReceptionProtocol string
	TLS                                 *TLSInfo
	// Provider and SessionID are left out of the log when empty.
	Provider, SessionID string
}

// Recorder writes records down. m is nil for records without a message. A nil error means that the record was
// accepted and will be written (invariant Q2). Implementations are safe for concurrent use; they read m during the
// call only.
type Recorder interface {
	Record(ctx context.Context, m *Message, r *Record) error
}

// Inbound takes responsibility for accepted messages. When Insert returns nil, every message is on stable storage or
// has a final record (invariant Q1) and the caller may not touch the messages again (M1). The error of a refused
// message is an [*InsertError]; messages that it does not name were accepted.
type Inbound interface {
	Insert(ctx context.Context, ms ...*Message) error
}

// InsertError says which messages of one Insert failed. A failure to save unwinds all messages of the call.
type InsertError struct {
	// Failed maps the index of a message to its error.
	Failed map[int]error
	// Err is the error of the whole call: a save that failed. Nil when only the named messages failed.
	Err error
}

// Error returns the first cause: of the call, else of the message with the lowest index.
func (e *InsertError) Error() string {
	if e.Err != nil {
		return "insert: " + e.Err.Error()
	}
	for _, i := range slices.Sorted(maps.Keys(e.Failed)) {
		return fmt.Sprintf("insert: message %d: %v", i, e.Failed[i])
	}
	return "insert failed"
}

// Unwrap returns all causes in the same order.
func (e *InsertError) Unwrap() []error {
	errs := make([]error, 0, len(e.Failed)+1)
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	for _, i := range slices.Sorted(maps.Keys(e.Failed)) {
		errs = append(errs, e.Failed[i])
	}
	return errs
}
