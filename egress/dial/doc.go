// Package dial opens outgoing connections from a chosen local address.
//
// A [Dialer] binds the source address of a [Request], connects to its target and returns the connection. What went
// wrong comes back as an [*Error], which tells a source address that this host does not have (EADDRNOTAVAIL at bind)
// from a target that did not answer: the first is the fault of the configuration, the second of the network.
//
// Invariants:
//
//   - DI1 A request with a source address never leaves from another address: a target of the other family is refused
//     with [ErrFamily] before anything is sent (flows SC-9).
//   - DI2 A dial ends within the timeout of the request and with its context.
//
// Limits: proxies are not served yet.
package dial
