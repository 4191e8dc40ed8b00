// Package smtpd receives mail over SMTP (RFC 5321).
//
// A [Server] is one listener. Each connection is one goroutine with a session: greeting, commands, content. Policy takes
// part by events (events.go): each command raises its question, and a rejection that comes back is the reply.
//
// The way of one message: MAIL and RCPT open a transaction; each recipient must pass the relay rules (flows RL). DATA
// reads the content into pooled scratch memory and copies it once into a buffer with room in front for trace headers. The
// whole becomes one message for smtp_server_data, then is split into batches, each a message of its own that gets a
// Received header and goes through smtp_server_message_received. All batches are handed to [mta.Inbound] with one call,
// and only its answer decides the reply.
//
// Replies to pipelined commands (RFC 2920) leave in one write: the writer is flushed only when no whole command line is
// buffered. Between messages a session holds about one kilobyte of buffers.
//
// Invariants:
//
//	Q1  250 is answered to content only after Inbound.Insert took responsibility for it.
//	SD1 Only CRLF "." CRLF ends content; content that is refused is read to its true end first, so that no byte of it
//	    is ever taken for a command.
//	SD2 What arrived in the clear before the TLS handshake is dropped, and what it set up is forgotten (RFC 3207
//	    section 4.2).
//	SD3 No peer holds a session by sending or reading slowly: a command has to end within client_timeout of its first
//	    byte, content has to come with 500 bytes a second after a grace of client_timeout and within an hour, a reply
//	    has to be taken within client_timeout.
//	SD4 A panic ends one session, with 421; it is logged with its stack.
//	G1  Run, Serve and ServeConn return after every goroutine they started has ended.
//
// Where this differs from the reference on purpose: a failed handshake closes the connection instead of going on in the
// clear, where both sides could disagree on what was said.
//
// Limits: BDAT, DSN, XCLIENT, the PROXY protocol and parameter layers are not served.
package smtpd
