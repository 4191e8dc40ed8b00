// Package wheel keeps entries in order of time at constant cost.
//
// A [Wheel] is a hierarchy of levels of 64 slots. An entry lies on the level of the highest group of six bits in
// which its tick differs from the present one, in the slot that this group names. When the present reaches a slot of a
// level above the lowest, the slot is dealt out over the levels below; an entry due within a year moves at most
// five times at 100 ms a tick, so insertion costs O(1), removal O(1) and popping amortised O(1), whatever the number of
// entries. One word of bits for each level
// says which slots are in use, so that time may pass in one step of any length: empty slots cost nothing.
//
// Time is what the owner passes in: a duration since an origin of its choice, best of a monotonic clock. Time that goes
// back is taken as standing still. Entries are intrusive: a handle is the memory of the entry, 24 bytes and the value.
//
// Invariants:
//
//   - W1 An entry is never popped before its time, and it is popped by the first Pop at or after its time rounded up to
//     the resolution, as far as the limit of that Pop allows.
//   - W2 Next is never later than the time of the earliest entry, rounded up to the resolution.
//   - W3 Every inserted entry is popped, removed or drained exactly once.
//
// Limits: a wheel takes about 40 KB. It has no lock and no goroutine; its owner serialises the calls.
package wheel
