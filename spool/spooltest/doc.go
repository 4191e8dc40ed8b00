// Package spooltest is the contract of package spool as a test that any
// implementation runs.
//
// A test of an implementation calls [Run] with a function that opens a spool in a
// directory; closing it and opening the same directory again is a restart:
//
//	func TestSpool(t *testing.T) {
//		spooltest.Run(t, func(t testing.TB, dir string) spool.Spool { ... })
//	}
//
// With the option [Durable] the crash cases run too: the test binary starts
// itself as a child that stores values and reports each acknowledged ID on a pipe,
// is killed without warning, and the parent checks that every one of them is
// there and intact (S1). The kill shows what the process failed to hand to the
// system; what the system failed to hand to the disk takes a power cut, or an
// implementation's own tests with failing flushes.
package spooltest
