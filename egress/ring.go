package egress

import "example.com/svc/queue"

// ring is a queue of tickets that grows as needed and gives its memory back when it is empty and large. The zero value
// is empty.
type ring struct {
	buf     []*queue.Ticket // its length is a power of two
	head, n int
}

const (
	minRing  = 8
	keepRing = 256 // an empty ring larger than this is let go
)

func (r *ring) at(i int) *(*queue.Ticket) { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring) push(t *queue.Ticket) {
	r.grow()
	*r.at(r.n) = t
	r.n++
}

// unpop puts t before the first.
func (r *ring) unpop(t *queue.Ticket) {
	r.grow()
	r.head = (r.head - 1) & (len(r.buf) - 1)
	r.buf[r.head] = t
	r.n++
}

func (r *ring) pop() *queue.Ticket {
	p := r.at(0)
	t := *p
	*p = nil
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	r.shrink()
	return t
}

func (r *ring) popBack() *queue.Ticket {
	p := r.at(r.n - 1)
	t := *p
	*p = nil
	r.n--
	r.shrink()
	return t
}

func (r *ring) grow() {
	if r.n < len(r.buf) {
		return
	}
	buf := make([]*queue.Ticket, max(minRing, 2*len(r.buf)))
	for i := range r.n {
		buf[i] = *r.at(i)
	}
	r.buf, r.head = buf, 0
}

func (r *ring) shrink() {
	if r.n == 0 && len(r.buf) > keepRing {
		r.buf, r.head = nil, 0
	}
}
