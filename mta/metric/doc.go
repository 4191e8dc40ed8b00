// Package metric declares instruments once and writes them as Prometheus text and as JSON.
//
// A subsystem declares its instruments in its metrics.go, on the [Set] of the MTA it belongs to: a family has a name, a
// help text, a kind and label names. [Counter.With] and its siblings return the handle of one label set; code on a hot
// path keeps the handle, because the operations on a handle are single atomic operations that neither lock nor
// allocate. Asking a family again for a label set it has costs a hash and no lock.
//
// A set belongs to one MTA; nothing is process-wide. A nil *Set is legal: instruments made from it work and are not
// exposed. A nil handle discards what it is told.
//
// Declaring a name twice with the same shape (kind, labels and buckets) returns the same family, so two parts may
// share it. Declaring it with another shape, or with a name that is none, is a mistake of the program and panics at
// construction. Wrong use later never panics: see [Counter.With].
//
// Invariants:
//
//	MT1  A series is written at most once in one exposition, and series are sorted, so that two expositions of equal
//	     values are equal bytes.
//	MT2  The buckets of a histogram are cumulative, end with +Inf, and _count equals the +Inf bucket of the same
//	     exposition, also while observations run.
//	MT3  A handle obtained before Delete of its label set stays usable; what it counts is no longer exposed.
//
// Limits: label values are not bounded in number. Whoever feeds a family with names from outside deletes label sets
// with the object they describe (flows MT-8).
package metric
