// Package dnstest serves zone text over UDP and TCP on the loopback address,
// well or badly, and holds the contract of a dns.Resolver as a test.
//
// [Serve] starts a [Server] that answers from any dns.Resolver, usually
// [Zone]; [Server.Behave] makes it hostile, for one name or for all. [Run] is
// the contract: every implementation of dns.Resolver can run it.
//
// It is meant for tests only.
package dnstest
