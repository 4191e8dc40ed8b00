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
// A module in Go is a value: declare its functions with [Fn], put the [Module] into [Config.Modules], and policies reach it
// with require; the example of Module shows one whole. Bound functions ask about their caller with [Place], [Loading],
// [Forget] and [EngineFrom]. Reading a name that a module does not declare gives nil, so that "if svc.x then" works;
// calling that nil on the same line says what is missing and what is near ([Module.Missing]). A name kept in a variable
// and called on another line gets the bare error of the VM.
//
// The standard library is that of Lua 5.2 as Shopify/go-lua has it, with these differences:
//
//	as the VM has it  getmetatable ipairs rawequal rawget rawlen rawset setmetatable tonumber type; table.insert pack
//	                  remove sort unpack; string.byte char len sub; math but for what follows; bit32; os.clock remove
//	                  rename tmpname
//	replaced          assert collectgarbage error load (text only) next pairs pcall print select tostring xpcall require;
//	                  string.find format gmatch gsub lower match rep reverse upper; table.concat; os.difftime getenv
//	                  (by [Config.Getenv]) time; io.lines open stderr stdout type write and methods of files;
//	                  package.config loaded path preload
//	added             unpack; math.tointeger type; math.huge is infinite
//	not served yet    dofile loadfile coroutine utf8 string.dump os.date setlocale; io.close input output read tmpfile:
//	                  calling one says so
//	absent            debug os.execute exit io.popen stdin package.cpath loadlib searchers searchpath
//
// Each replacement says why where it is. [Engine.Hold] keeps one state for an owner that calls it several times, as
// deliveries written in Lua do.
//
// Limits: memory is not bounded per state: a policy that doubles a string in a loop takes what it takes. Values
// converted to Go nest at most 64 levels and hold at most a million entries. Strings made by library functions are at
// most 256 MB, patterns take at most 20 million steps. Names of variables in errors of the VM ("local 'x'") are
// sometimes those of a neighbour; file and line are right.
package script
