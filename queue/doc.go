// Package queue holds accepted messages until they are due and hands them out.
//
// A [Manager] is the [mta.Inbound] of the service. The way of one message:
//
//  1. [Manager.Insert] names its scheduled queue, asks [GetConfig] the first time, stores the message together with the
//     others of the call in one commit, writes the Reception record, and returns.
//  2. Due at once, the message becomes pending in its queue; due later, it goes into the one wheel of all queues and
//     leaves the memory but for its envelope. The wheel's driver makes it pending when its time has come.
//  3. Workers serve queues with pending messages in turn, one worker for a queue at a time, in order. They apply
//     max_message_rate and throttle_insert_ready_queue and lend a [Ticket] to the [Outlet].
//  4. The outlet ends the ticket with [Ticket.Finish], [Ticket.Return] or [Ticket.Corrupt]. The queue writes the records.
//     A message without recipients left goes to the finisher, which removes many with one commit; any other goes
//     back by the retry schedule, or expires.
//
// At start [Manager.Run] finds the messages of the store and puts each into its queue while inserts are accepted
// already. When its context ends it waits for the tickets, saves what is not saved, and lets go of everything.
//
// # Invariants
//
//   - Q1 Insert returns nil after every message of the call is on stable storage (or was for the queue "null"). An
//     error means that nothing of the call is stored.
//   - Q2 A message leaves the spool only after its last record was accepted by the recorder.
//   - Q3 Every ticket is ended exactly once. A second end changes nothing.
//   - Q4 After [Manager.Recovered] every message of the store is in one queue or has a final record; only messages whose
//     queue cannot be resolved stay in the store untouched (flows SP-6). A message in the finisher's hands is never
//     offered again. Delivering twice is possible after a crash between the acceptance by the peer and the removal.
//   - L1 Lock order: registry shard, then queue; the locks of wheel, run list and queue are never held together. No lock
//     is held across an event, a disk write, a record or a call of the outlet.
//   - G1 Every goroutine is awaited by Run.
//
// # Limits
//
// Time in queues follows the monotonic clock: a jump of the wall clock neither ages nor wakes messages that are in
// memory. Attempts and due times live in memory and are inferred from the age after a restart. A queued message costs a
// wheel entry of 64 bytes besides its envelope. Bodies of pending messages stay in memory within a budget
// ([Options].ResidentBytes); beyond it they are loaded when they are sent. Strategies other than the singleton wheel and
// protocols other than SMTP are refused in [Config].
package queue
