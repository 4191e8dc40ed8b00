// Package jsonl writes lines to compressed segment files and reads them back.
//
// A [Writer] keeps one open segment in a directory: a zstd stream named after the UTC time of its first line. Lines
// are collected in memory, compressed in chunks and appended, so that one system call carries many lines. The segment
// is finished when it has grown or aged enough, when the owner asks, and at close; then its write permission is
// removed: read-only means complete. A [Reader] iterates over the lines of a segment, also of one that is still
// open or was cut off by a crash; [Dir] iterates over all segments of a directory in order of time.
//
// Invariants:
//
//	J1  A line that Write took is kept in memory until the file took it. When the disk fails, the segment is cut back
//	    to its last whole chunk and given up, and the kept lines go to a new segment: they are neither lost nor
//	    doubled while the process lives.
//	J2  No empty segments: a file is made with its first line, and removed if that could not be written.
//	J3  A reader gives whole lines only.
//
// Limits: lines may hold any bytes except line feeds. Up to a second of lines, or whatever passes between two calls of
// Flush, is lost when the process dies. A crash leaves a segment without the end of its stream; the next start makes it
// read-only as it is. A writer that has opened a segment keeps about 4 MB for compression.
package jsonl
