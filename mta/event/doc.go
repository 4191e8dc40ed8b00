// Package event carries named, typed questions to the handlers that answer them.
//
// A subsystem declares the questions it asks with [Define], as package-level values in its events.go. A declaration
// is immutable and knows the name, the argument type, the answer type and how several handlers combine ([Mode]).
// Handlers belong to a [Bus] value, never to the process: two MTAs in one process hold two buses.
//
// The way of one question: the subsystem calls [Event.Call] with its bus. The bus returns the handlers registered for
// the name, in order of registration. Each handler answers with a value, with [Pass] ("not mine") or with an error.
// Call stops at the first answer or error; when nobody answers, handled is false and the caller applies the default in
// plain sight.
//
// The bus carries questions only. Facts (records, metrics, traces) have their own ways.
//
// Typed events sit on an untyped bus, so script layers and foreign buses fit under it: [Handler.Call] takes the
// argument value as any and returns the answer as any. A handler in Go is registered with [Event.On].
package event
