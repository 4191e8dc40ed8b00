// Package server assembles the subsystems into one running mail transfer agent. It is the roof for Go programs: no
// script layer is linked.
//
// A [Config] says what runs: listeners, spools, logs, resolver, and the bus whose handlers are the policy. [New] checks
// it and builds the parts; nothing is opened or bound yet. [Server.Run] is one page that reads like this list:
//
//	start: spools are opened, listeners are bound (one that cannot be bound ends the start, nothing half-started),
//	       journal, egress and queue run (the queue recovers the spool), then the listeners serve
//	stop:  listeners stop accepting and sessions end, the queue stops promoting, dispatchers finish the message in
//	       hand, tickets come home (Q3), the HTTP listeners end, the event shutdown_logging, the journal is flushed,
//	       the spools are closed
//
// A policy that is a script fills the same Config through a [Builder]; [Prepare] raises pre_init and init, for Go and
// script handlers alike. After New the builder refuses what belongs into init.
//
// Without spools messages are kept in memory, which the log says loudly. Two servers in one process share nothing.
package server
