package egress

import "math"

// idealConnections is how many connections a ready queue should have for waiting messages (flows RQ-3): the limit is
// approached as the queue grows, and there are never more connections than messages.
func idealConnections(waiting int, limit uint64) int {
	if waiting <= 0 || limit == 0 {
		return 0
	}
	n := math.Ceil(float64(limit) * (1 - math.Exp(-0.023*float64(waiting))))
	if n >= float64(waiting) {
		return waiting
	}
	return int(n)
}
