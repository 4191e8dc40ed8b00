// Package cache keeps values by key with a capacity, an age for each item, and one populate at a time per key.
//
// The story of a lookup with [Cache.Fetch]: a live item is returned at once. Otherwise the first caller runs its
// populate function, on its own goroutine; whoever asks for the same key meanwhile waits for the answer, its context,
// or a timeout. Errors are answers too and are kept for a while, so that a failing source is not asked by everybody.
// When a part of the cache is over its capacity, ten items of it are looked at: the expired ones go, then those that
// were not used for longest, at most half of them (flows CA-1).
//
// The cache starts no goroutine. Expired items are removed when they are asked for and by [Cache.Prune], which the
// owner calls from time to time (flows CA-2); owners call [Cache.Clear] when memory is short.
//
// Invariants:
//
//	C1  At most one populate function runs for a key, unless the key was set, deleted or cleared while it ran.
//	C2  A value that was being populated during Set, Delete or Clear goes to those who wait for it and is not stored.
//	C3  A populate that ended because its caller went away is no answer: another waiter populates.
//
// Limits: the capacity is divided among up to 16 parts by a hash of the key, so that an unlucky distribution evicts a
// little before the whole is full. A populate function that fetches its own key waits for itself until the timeout.
package cache
