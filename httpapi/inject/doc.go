// Package inject builds messages from injection requests and hands them in.
//
// An [Injector] takes an api.InjectV1Request and makes one message per recipient: content with line ends normalised to
// CRLF (flows HI-9), metadata of the reception (HI-10), the event http_message_generated, trace headers, and then one
// Insert of all messages, so that a request waits for the storage once. Recipients are processed in order and
// independently; one that fails is counted and named, the others go on (HI-12).
//
// Templates, attachments, AMP parts, deferred_spool and deferred_generation are not served yet and are refused by name.
// Content without template syntax is the same in every dialect and is sent as it is.
package inject
