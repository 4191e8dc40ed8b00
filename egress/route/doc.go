// Package route turns a domain into an ordered list of hosts to connect to.
//
// A [Planner] makes a [Plan] from the MX records of a domain ([Planner.Plan]) or
// from a fixed list ([Planner.PlanList]). The plan has a site name: domains whose
// mail goes to the same hosts have the same one, and share ready queues. Later,
// when connections are needed, [Planner.Targets] turns the hosts of a plan into
// addresses in the order to try.
//
// Plans are kept until their TTL ends, failures for five minutes. One lookup is
// in flight per domain. Whoever comes first does the lookup; when it gives up
// before the end, one of those who wait goes on in its place, so the package
// needs no goroutine of its own.
//
// # Invariants
//
//   - R1 A plan is never handed out after Expires, and never changes.
//   - R2 No more than Config.Concurrency MX lookups run at one time (flows SC-6).
//   - R3 Names in Hosts and Site consist of letters, digits, '-', '_' and '.',
//     apart from the marks "(|)?" and ":" that the site name adds: dns answers
//     with other host names never get here (dns D4).
//
// # Limits
//
// A plan holds at most 32 hosts, the best ones by preference; Targets gives at
// most 64 addresses. MTA-STS and DANE are not served yet.
package route
