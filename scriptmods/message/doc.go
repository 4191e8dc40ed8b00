// Package message gives policies the objects message, address, connectionmeta and authinfo.
//
// They are views of [mta.Message], [mta.Address], [mta.Session] and [mta.Auth]: methods read and change the Go value
// itself, and a handler may use them only while it runs. [Types] is the declaration; every name stands there once with
// its Go function, whose signature is the documentation of the types.
//
// Headers are changed without touching the other bytes of a message (package mail). A value that a header cannot hold
// without becoming two headers is refused, so that text of a peer cannot add headers through a policy.
//
// Metadata values are what JSON can say. Whole numbers are kept as integers, other numbers as floats; text has to be
// UTF-8, since it comes back from the spool as JSON.
//
// Limits: no method parses MIME, signs or verifies; the methods of the message object that do are not served yet.
package message
