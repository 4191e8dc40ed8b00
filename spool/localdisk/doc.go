// Package localdisk keeps a spool as one file for each value, the simplest kind to
// inspect with the tools of the system.
//
// The layout below the spool's directory is
//
//	lock                  holds other openers off
//	tmp/                  files being written; emptied at start
//	quarantine/           records set aside, each with a .reason file
//	c2/c232ab00...        the frame of one value, named by its ID
//
// Put writes a file in tmp, flushes it, renames it into place and flushes the
// folder (S1); puts into one folder at the same time share that flush. PutBatch
// writes and flushes its files in parallel and each folder once. Delete flushes
// nothing, which S2 allows.
//
// Names are made of the hexadecimal digits of IDs and of nothing else, so no ID
// leads out of the directory. Files with other names are left alone.
//
// # Limits
//
// Every put costs two flushes; package bolt is an order of magnitude faster.
// Enumerating holds 16 bytes for each stored value in memory.
package localdisk
