// Package bolt keeps a spool in one bbolt database with group commit and a log in
// front of it.
//
// # One write
//
// Put wraps the value in its frame and queues it. One goroutine owns all writing:
// it takes everything that is queued, appends it to the log with one write, flushes
// that, and answers every caller. What arrives during a flush shares the next one,
// so one flush serves as many callers as there are, and a lone caller waits for
// nothing but its own flush. The goroutine lets callers that it has just woken run
// before it closes the next batch, which about doubles the batches of a busy
// server. Removals are entries of the log too; they wait up to a millisecond for
// something to store, with which they share a flush.
//
// # The log and the database
//
// Most values of a mail queue live for moments: they are written once and removed
// while they are still in the log, and the database never hears of them. What
// outlives the log moves to the database, oldest file first, when the log holds
// more than a bound of bytes or records. Keys are [spool.ID.Key], in time order:
// values append to the last page. Removals of what the database holds reach it
// about a thousand at a time. Reading looks into the log first. Open replays the
// log into the database, and Close empties it, so that a spool that was closed is
// its database file alone.
//
// A batch in the log has a header with a random salt of its file, the number of the
// file and of the batch, the oldest file that still counts, and a checksum over a
// table of its entries, which repeats the checksum of each frame. A batch that was
// not wholly written does not count. Files are used again, since overwriting is
// cheaper than appending, but only when a later flush has told that they no longer
// count.
//
// [Spool.PutThen] hands a value from the writer of one spool to that of another, for
// data and metadata of a message: the caller waits once for both flushes.
//
// The free list of the database is not written but rebuilt at start.
//
// # Trouble
//
//   - A write or flush that fails is the answer to every caller of its batch, and
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
