// Package limit keeps rates and leases.
//
// A [Rate] says how often something may happen ("100/s"), a [Limit] how many may be going on at once. A [Keeper] counts
// both under names: [Local] in this process, others between nodes. Whoever is about to do something takes from a rate,
// or holds a [Lease] of a limit while it lasts.
//
// Rates follow the generic cell rate algorithm: each name has one number, the theoretical arrival time (tat), at which
// the allowance would be untouched again. Taking n moves it n intervals onward; a take that would move it further than
// the burst ahead of now is refused and moves nothing (flows TH-2). Intervals are kept as exact fractions of
// nanoseconds, so a rate is neither exceeded nor undercut by rounding.
//
// A lease is one of a set with an expiry under the name of the limit. Taking one first prunes what has expired, then
// succeeds if there is room (flows TH-7). Its holder extends it while it works, and releases it.
//
// Invariants:
//
//   - E1: no rate above count per period plus burst in any window, no more leases than the limit, counted here.
//   - E2: a changed rate starts fresh: a name together with count, burst and period is the key (flows TH-4).
//   - E3: several rates or limits that apply together are asked from the smallest to the largest (flows TH-8).
//
// Limits: a burst may reach at most [MaxBurstTime] ahead. Local forgets a rate once its tat is past and a limit once it
// has no lease; it needs no goroutine for that.
package limit
