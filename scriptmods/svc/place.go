package svc

import "context"

// place is the "file:line" of the policy that called with ctx, "" when the engine does not tell.
func place(ctx context.Context) string {
	if p, ok := ctx.(interface{ Place() string }); ok {
		return p.Place()
	}
	return ""
}
