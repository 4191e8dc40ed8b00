package dns

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"
)

// ordering decides which server is asked first.
type ordering struct {
	turn atomic.Uint32
	rtt  []atomic.Int64 // smoothed round trip per server, ns; 0 is unknown
}

// next returns the indexes of the servers in the order to ask.
func (o *ordering) next(how Ordering) []int {
	n := len(o.rtt)
	idx := make([]int, n)
	shift := 0
	if how == RoundRobin {
		shift = int(o.turn.Add(1)-1) % n
	}
	for i := range idx {
		idx[i] = (i + shift) % n
	}
	if how == QueryStatistics && n > 1 {
		now := make([]int64, n)
		for i := range now {
			now[i] = o.rtt[i].Load()
		}
		slices.SortStableFunc(idx, func(a, b int) int { return cmp.Compare(now[a], now[b]) })
		// A server that was slow once must get another chance.
		if o.turn.Add(1)%32 == 0 {
			idx[0], idx[n-1] = idx[n-1], idx[0]
		}
	}
	return idx
}

// observe notes the time server i took. Two requests that end at once may lose
// one of the notes, which does no harm.
func (o *ordering) observe(i int, d time.Duration) {
	old := o.rtt[i].Load()
	if old == 0 {
		o.rtt[i].Store(max(1, int64(d)))
		return
	}
	o.rtt[i].Store(max(1, old+(int64(d)-old)/8))
}
