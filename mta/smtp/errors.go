package smtp

import "errors"

// Errors about what was read.
var (
	// ErrLineTooLong says that a line was longer than the caller allows. It was read to its end, so that the next line
	// can be read.
	ErrLineTooLong = errors.New("smtp: line too long")
	// ErrLineEndless says that no line end came within [MaxDiscard] bytes. The stream is no longer in step: close it.
	ErrLineEndless = errors.New("smtp: line without an end")
	// ErrReply is wrapped by the errors about replies that do not follow RFC 5321 section 4.2 or exceed the limits. The
	// stream is no longer in step: close it.
	ErrReply = errors.New("smtp: malformed reply")
)

// ErrUnsafeLine says that a line was not written because it holds CR, LF or NUL (W3).
var ErrUnsafeLine = errors.New("smtp: line holds a line break")
