package mta

// Refusal is why no new mail is accepted right now. Its text goes to the peer: as 421 4.3.2 over SMTP (flows SM-4), as
// 503 over HTTP (flows HI-1).
type Refusal struct {
	// Reason is a short text such as "shutting down".
	Reason string
	// Denied says that the refusal counts in total_connections_denied: memory, disk and unhealthy spools do, start-up
	// and shutdown do not.
	Denied bool
}

// Error returns the reason.
func (r *Refusal) Error() string { return r.Reason }

// Gate says whether new mail is accepted: nil, or why not. It costs a few nanoseconds and is safe for concurrent use.
// A nil Gate accepts.
type Gate func() *Refusal

// Check asks g.
func (g Gate) Check() *Refusal {
	if g == nil {
		return nil
	}
	return g()
}
