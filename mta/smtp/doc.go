// Package smtp reads and writes the SMTP wire that the receiving and the sending engine share: lines, commands, replies,
// paths, parameters and dots.
//
// A server reads a line with [Reader.ReadLine], makes a [Command] of it with [ParseCommand], answers with
// [Writer.WriteReply] and takes the content with [Reader.ReadData]. A client writes lines with [Writer.WriteLine] and
// content with [Writer.WriteData], reads answers with [Reader.ReadReply] and learns what the server offers with
// [ParseExtensions]. Nothing here knows about sockets, time or policy: deadlines belong to the reader and writer below.
//
// Invariants:
//
//	W1  Only CRLF ends a line and only CRLF "." CRLF ends content (RFC 5321 sections 2.3.8 and 4.1.1.4). No other
//	    sequence of CR, LF and dots does, however it is cut into reads.
//	W2  Memory is bounded by what the caller allows, whatever the peer sends.
//	W3  Nothing that is written as one line, path or reply can become two; content leaves with CRLF line ends only and
//	    with every leading dot doubled.
//
// Limits: BDAT (RFC 3030) needs [Reader.ReadFull] only and has no framing of its own here. Values are not safe for
// concurrent use, but a Reader and a Writer on one connection are independent.
package smtp
