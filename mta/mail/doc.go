// Package mail reads and changes message headers without losing a byte.
//
// [Parse] finds the fields of a message in place: a [Header] is a list of positions in the original bytes, so that
// whatever is not changed stays as it came, odd folding and broken lines included. Changes make a new message by
// copying the untouched runs around the change.
//
// The header ends at the first empty line (RFC 5322 section 2.1), or before the first line that can be no header field
// and no continuation; such a message has its body begin there. Lines end with CRLF or, in mail that was let through
// that way, with a bare LF.
//
// Limits: a header larger than [MaxHeader] bytes or [MaxFields] fields is cut there, and the rest counts as body.
package mail
