// Package spool keeps opaque values under time-ordered IDs on stable storage.
//
// It knows nothing of mail. A program makes an ID with [IDs.Next], stores bytes
// under it with [Spool.Put], and may acknowledge to its peer as soon as Put has
// returned nil. After a crash it enumerates what is left with [Spool.All] or,
// with the values, [Values], and goes on.
//
// Every stored value is wrapped in a frame that carries its length and a
// checksum (see [AppendFrame]), so that a truncated or flipped record is noticed
// as a [*CorruptError] whatever the kind of storage below.
//
// # Kinds
//
// The folders below hold one kind each: bolt (one database with group commit),
// localdisk (one file a value), memory (nothing survives). Package kinds opens a
// spool by its configuration; an embedder who imports one kind links no other.
// Package spooltest is this contract as a test that any implementation runs.
//
// # Invariants
//
//   - S1: Put returned nil means the value survives power loss, unless the spool
//     was opened with flush = false or is kept in memory.
//   - S2: a deleted value may come back after a crash. Callers bear seeing an ID
//     again.
//   - S3: a value is never returned changed. Either the frame checks out or the
//     answer is an error.
//   - S4: after a failed flush a spool refuses writes ([ErrUnhealthy]). What the
//     kernel did with the pages of a failed fsync is unknown, so trying again
//     and believing the second answer would break S1.
//
// # Limits
//
// A value holds at most [MaxValue] bytes. One process at a time may open a
// spool; a second one gets [ErrLocked].
package spool
