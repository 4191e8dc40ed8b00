// Package egress carries messages out: pools, sources, paths, ready queues and the sessions that empty them.
//
// The story of one message. The scheduled queue lends a ticket to [Manager.Take]. The pool of its queue gives sources in
// weighted turns; the route planner names the site its domain is served by; source, site and protocol name the ready
// queue, whose [PathConfig] is asked for when it is made. The ticket waits there for a dispatcher. A dispatcher is one
// goroutine with at most one connection: it takes a lease of every connection limit, takes a ticket, then connects to
// the targets of the plan in turn through the [Opener] of the protocol, obeys the message rates, has the [Carrier]
// deliver, classifies the replies and finishes the ticket with one result per distinct reply. Then it takes the next
// ticket, and idles on its connection when there is none. How many dispatchers a ready queue has follows from the number
// of tickets that wait (flows RQ-3).
//
// [Manager.Run] owns every dispatcher and one ticker that looks after all ready queues: configs that grew old, limits
// that kept dispatchers from opening, sessions without progress, ready queues without use.
//
// Invariants:
//
//   - E1 No connection is opened without a lease of every limit of its path, no message sent and no connection made
//     before the rate admitted it. Both are counted by the [limit.Keeper].
//   - E2 A ticket is in one place: a ready queue, the hands of one dispatcher, or back with its queue (Q3). Tickets that
//     cannot stay go back in one way, [queue.Ticket.Return], with the reason.
//   - E3 No lock is held across an event, a lookup, a connection or the end of a ticket, but that of the selector of one
//     scheduled queue, for which tickets come one at a time. Lock order: selector, manager, ready queue.
//   - E4 A reply that is no answer to what was asked never counts as delivered: only a positive reply to the end of the
//     content does.
//   - G1 Every goroutine is one of a Manager, and Run waits for it.
//
// Limits: proxies, DANE, MTA-STS, LMTP, client authentication, the health of sources and administrative suspensions are
// not served yet; settings that ask for them are refused. A message is tried alone, never in a batch with others. With
// try_next_host_on_transport_error only the last attempt is recorded.
package egress
