// Package e2e holds tests of whole servers: mail goes in through the listeners and comes out at a sink, and the ledger
// of the run tells whether anything was lost or doubled.
package e2e
