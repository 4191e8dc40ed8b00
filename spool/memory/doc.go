// Package memory keeps a spool in the memory of the process, where nothing
// survives its end.
//
// It serves tests and embedders who accept that. Invariant S1 does not hold
// beyond the life of the process; all else of the contract in package spool does.
// A test makes it fail with [Spool.SetFault], [Spool.Corrupt] and the like.
//
// Values are copied in and out. The spool is split by ID into 64 shards with a
// lock each; a batch is stored shard by shard, so that a reader may see a part of
// it meanwhile.
package memory
