// Package netmap finds values by address block or by domain name.
//
// [CIDR] answers with the value of the most specific block that contains an address; [Domain] with the value of a name,
// else of the nearest wildcard above it. Both are made for few changes and many lookups.
//
// Invariants:
//
//	N1  An address in IPv4-mapped form is taken as IPv4 and zones are ignored, in keys and lookups alike (RFC 4291
//	    section 2.5.5.2), so that no spelling of an address slips past a rule.
//	N2  Names are compared without regard to ASCII case and to a final dot (RFC 4343).
//
// Limits: names in Unicode and in A-label form are different names; callers convert first.
package netmap
