// Package dns asks the domain name system.
//
// A [Resolver] answers one question: the records of one type under one name.
// Three resolvers live here. [Stub] asks recursive name servers and caches what
// they say. [Zones] answers from zone text held in memory. [Func] is a function,
// for tests. [Aggregate] asks several in turn. On top of any of them stand the
// questions mail asks: [LookupMX], [LookupHost], [LookupIP], [LookupTXT] and
// [LookupPTR].
//
// # A lookup, step by step
//
//  1. The name is made canonical: A-labels, lower case, no trailing dot. A name
//     written with a trailing dot is absolute: neither the search list nor (in
//     mode Auto) the hosts file is consulted for it.
//  2. The cache answers if it holds an answer within its TTL.
//  3. Otherwise the caller joins the lookup in flight for this name and type, or
//     starts one.
//  4. The lookup asks the servers, over UDP and, when the answer is cut, TCP. An
//     answer counts only if it comes from the server asked, repeats the id and
//     repeats the question (RFC 5452 section 9.1); everything else is dropped and
//     the wait goes on.
//  5. CNAMEs are followed inside the answer and, when it ends in an alias, by
//     asking again. Records that do not hang on this chain are ignored.
//
// # Invariants
//
//   - D1 An answer is never given out after its TTL, and its TTL field is what is left.
//   - D2 No goroutine outlives Close; a lookup nobody waits for any more is cancelled.
//   - D3 A caller that gives up does not end the lookup for the others.
//   - D4 Names of hosts in answers (MX, PTR) consist of letters, digits, '-',
//     '_' and '.': they are safe in log lines and queue names. Aliases, which may
//     have any character, are in presentation form (RFC 1035 section 5.1).
//   - D5 Answers held in the cache are shared: callers must not change Records.
//
// # Limits
//
// A chain has at most 8 aliases, a name 255 octets on the wire, an answer 1024
// records. Answers of more than 16 KB are given out, but not kept. TTLs are
// clamped. A lookup with all its attempts and aliases takes a minute at most.
// DNAME and delegations in [Zones] are not served. Validation of
// DNSSEC signatures is not done here: [Answer].Secure is what a trusted
// validating server says ([StubConfig].TrustAD), or what [Zone] declares.
package dns
