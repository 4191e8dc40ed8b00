// Package script runs policies in Lua against an event bus.
//
// A policy is a Lua file. An [Engine] compiles it, runs it, and puts the handlers it registers with svc.on on the bus
// of the service, where they answer questions like handlers in Go. What policies can call is given as [Module] values:
// plain Go functions and types that are bound by reflection, once. Nothing else imports the Lua VM.
//
// The story of one event: the bus calls the handler of the engine with the argument struct. The handler takes a state
// from the pool of its generation (or makes one: loads the compiled policy and runs it), pushes the fields of the
// struct, calls the Lua function with the same index of registration, turns the results into the answer type of the
// event, makes the messages and sessions it handed out unusable, and gives the state back.
//
// A load makes a generation: the policy and every file it requires, compiled once. The handlers of the new generation
// replace those of the previous one in one step; a policy that fails to load changes nothing. Calls in flight finish on
// the generation they began with.
//
// Answers: a handler that returns nothing passes (event.Pass). An explicit nil passes too when the event is a chain
// with an answer, or when the answer is a pointer, list, map or interface; otherwise it is the zero answer. For events
// without an answer any returned value, nil included, ends the chain (flows CE-5).
//
// Errors: anything raised in Lua comes out as [*Error] with the place, the Lua stack and the Go cause, so that errors.As
// finds an *mta.Rejection raised by svc.reject, also after it went through pcall and error. Errors of Go functions are
// strings in Lua, rejections are objects with a text.
//
// Invariants:
//
//	LU1  A state runs on one goroutine at a time, and a value of one state never reaches another.
//	LU2  A message or session reached through an object is unreachable through it after the call that handed it out.
//	LU3  A state that saw an error leave a call is thrown away (flows CE-4).
//	LU4  A panic of a bound Go function, or of the VM, ends the call as an error and nothing else.
//	LU5  A call ends: VM instructions are counted and the clock is looked at while they run; pcall cannot catch that.
//
// The VM is Shopify/go-lua, a Lua 5.2. What it has wrong is replaced here: error values, xpcall, pairs, patterns,
// string.format, io, os.time and others; each replacement says why. [Engine.Hold] keeps one state for an owner that
// calls it several times, as deliveries written in Lua do.
//
// Limits: memory is not bounded per state: a policy that doubles a string in a loop takes what it takes. Values
// converted to Go nest at most 64 levels and hold at most a million entries. Strings made by library functions are at
// most 256 MB, patterns take at most 20 million steps. Coroutines, utf8, os.date, loadfile and dofile are not served yet
// and say so; os.exit, os.execute, io.popen and debug do not exist. A walk with next itself costs the square of the
// number of names, and fails when the current entry was removed; pairs does neither. Names of variables in errors of
// the VM ("local 'x'") are sometimes those of a neighbour; file and line are right.
package script
