// Package bolt keeps a spool in one bbolt database with group commit.
//
// # One write
//
// Put wraps the value in its frame and queues it. One goroutine owns all writing:
// it takes everything that is queued, appends it to a log with one call, flushes
// the log once, and answers every caller (S1). What arrives during a flush shares
// the next one, so one flush serves as many callers as there are, and a lone
// caller waits for nothing but its own flush. The goroutine lets callers that it
// has just woken run before it closes the next batch, which about doubles the
// batches of a busy server. Removals wait a moment for something to store.
//
// # The log
//
// Most values live for less than a second. They are read from the log, and their
// removal is an entry in the log: the database never sees them, so that nothing
// is written twice and no page of a tree is written again for a neighbour. The
// log is a row of files of 8 MB in which blocks are overwritten rather than
// allocated. Its index is in memory. When it holds too much, the oldest records
// move to the database, between two batches and a little at a time; removals of
// what is in the database are collected and take place in one transaction. The
// oldest file goes first, always, so that an entry that removes a value outlives
// the value. Each batch names the oldest file that counts; a file is used again
// only after that was flushed.
//
// Open moves what a log holds to the database and removes the log, and Close does
// the same. A batch at the end that a crash cut short was not acknowledged.
//
// # The database
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
// A damaged head of a batch in the log loses what that batch holds, which is
// logged; the batches behind it are found again.
//
// # Limits
//
// The log takes up to 256 MB and some files more, while as much is stored.
// The file does not shrink; freed pages are used again. The check at start reads
// every page's header once. On Linux the resident part of the map is dropped
// every thousand records, so that a long queue does not fill the memory of the
// process.
package bolt
