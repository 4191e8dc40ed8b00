// Package journal writes log records to files.
//
// The story of one record: [Journal.Record] encodes it once as a JSON object, on the goroutine of whoever made it. Each
// logger, one per configure_local_logs, is asked whether it wants the record: by its type, then by its filter event.
// For those that do, the chosen metadata and headers are added and the line goes into the queue of the logger, which
// is bounded: when it is full the producer waits. The goroutine of the logger collects lines and appends them to
// compressed segments (package jsonl), which readers see about a second later.
//
// The journal is the usual [mta.Recorder]. Without loggers it accepts records and drops them, for programs that embed
// an MTA and want no log.
//
// Invariants:
//
//	Q2  A nil error of Record means that every logger that wants the record has it in its queue, and that it will be
//	    written unless the process dies within about a second.
//	JL1 While a disk fails, queued lines are kept and tried again with new segments; producers wait once the queue is
//	    full. Lines are given up at shutdown only, after a grace time, and then counted in the error of Run and in the
//	    diagnostic log.
//	JL2 A message or record is read during the call of Record only.
//
// Limits: records pass through memory, not through fsync; a power loss may take what the system had not written.
// Templates and log hooks are not served yet.
package journal
