// Package smtpc delivers messages over SMTP: the client side of the wire.
//
// An [Opener] dials one target, awaits the banner, says EHLO, and settles TLS as the path demands. What it returns is a
// connection that carries one message after the other: RSET where asked for, MAIL, RCPT for each recipient, DATA, the
// content, the dot. With PIPELINING all commands up to DATA leave in one write and their replies are read in order (RFC
// 2920 section 3.1); the content and its end leave in as few writes as its size allows.
//
// What the answers mean is left to package egress. Here it is decided who got which answer, and whether the connection
// is still in step.
//
// Invariants:
//
//   - C1 A reply is taken for the command it answers, or the connection is dropped: a code that cannot answer the
//     command, a malformed reply, or silence break it, and the recipients without an answer get a transient one.
//   - C2 Every wait has an end: each reply and each piece of content has its own time (RFC 5321 section 4.5.3.2), which a
//     trickle of bytes does not extend. When the context of a delivery ends, the connection breaks at once.
//   - C3 What a peer sends takes bounded memory, and its text is escaped before it goes into a response.
//   - C4 Content leaves with CRLF line ends and stuffed dots only, whatever was stored; nothing that was buffered before
//     a TLS handshake is read after it (RFC 3207 section 4.2).
//
// Limits: LMTP, authentication, client certificates and BDAT are not served. There is no fall-back to HELO.
package smtpc
