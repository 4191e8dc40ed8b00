// Package bolt keeps a spool in one bbolt database with group commit.
//
// # One write
//
// Put wraps the value in its frame and queues it. One goroutine owns all writing:
// it takes everything that is queued, applies it in one transaction, commits, and
// answers every caller. What arrives during a commit shares the next one, so one
// flush serves as many callers as there are, and a lone caller waits for nothing
// but its own flush. The goroutine lets callers that it has just woken run before
// it closes the next batch, which about doubles the batches of a busy server.
//
// Keys are [spool.ID.Key], in time order: new values append to the last page.
// The free list is not written but rebuilt at start.
//
// # Trouble
//
//   - A commit or flush that fails is the answer to every caller of its batch, and
//     the spool refuses writes from then on (S4); reading goes on.
//   - A write that finds no space is spool.ErrFull. Removals are still tried. A
//     probe each second ends the condition once there is space.
//   - The database reads its file through a memory map and asserts what it sees.
//     Every access recovers from such panics and from faults of the map.
//
// # Damage
//
// Open checks the structure of the tree by reading the file, not the map. When a
// page is damaged, or no meta page is valid, the records whose frames check out
// are copied into a new database: first those that the intact parts of the tree
// lead to, then, for the ranges of keys that were lost, those found in any page
// that looks like a leaf. The damaged file stays beside it as
// "spool.db.damaged-<time>". Values removed lately may come back that way (S2).
// A record that alone is damaged stays where it is, answers with a
// *spool.CorruptError and can be set aside with Quarantine.
//
// # Limits
//
// The file does not shrink; freed pages are used again. The check at start reads
// every page's header once. On Linux the resident part of the map is dropped
// every thousand records, so that a long queue does not fill the memory of the
// process.
package bolt
