package egress

// roundRobin is the weighted round robin of one scheduled queue (flows SS-3). The zero value begins.
type roundRobin struct {
	index, current int
}

// pick chooses one of the candidates, which are places in weights; all weights are above 0. It returns the place in
// candidates, -1 when there is none.
func (r *roundRobin) pick(weights []int, candidates []int) int {
	n := len(candidates)
	switch n {
	case 0:
		return -1
	case 1:
		return 0
	}
	top, step := 0, 0
	for _, c := range candidates {
		top = max(top, weights[c])
		step = gcd(step, weights[c])
	}
	for {
		r.index = (r.index + 1) % n
		if r.index == 0 {
			r.current -= step
			if r.current <= 0 {
				r.current = top
			}
		}
		if weights[candidates[r.index]] >= r.current {
			return r.index
		}
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
