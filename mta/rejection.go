package mta

import "strconv"

// DisconnectMode says what happens to an SMTP session after a [Rejection] (flows SM-19).
type DisconnectMode uint8

const (
	// If421 closes the session only when the code is 421.
	If421 DisconnectMode = iota
	// ForceDisconnect closes the session after the reply.
	ForceDisconnect
	// FollowWith421 adds a 421 reply when the code is not 421, then closes.
	FollowWith421
)

// Rejection is an answer for the peer that travels as an error. It is found with errors.As through any wrapping.
type Rejection struct {
	// Code is the reply code, 400 to 599.
	Code int
	// Text is the text for the peer and may begin with an enhanced code.
	Text string
	// Mode says whether the session ends.
	Mode DisconnectMode
}

// Reject makes a rejection that leaves the session open unless the code is 421.
func Reject(code int, text string) error { return &Rejection{Code: code, Text: text} }

// Disconnect makes a rejection with a mode.
func Disconnect(code int, text string, mode DisconnectMode) error {
	return &Rejection{Code: code, Text: text, Mode: mode}
}

// Error returns code and text on one line, line breaks written as escapes.
func (r *Rejection) Error() string { return strconv.Itoa(r.Code) + " " + oneLine(r.Text) }

// Response returns the rejection as a reply.
func (r *Rejection) Response() Response { return ParseResponse(r.Code, r.Text) }
