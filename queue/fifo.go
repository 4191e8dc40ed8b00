package queue

// fifo is a queue of items that gives memory back as it drains. The zero value is empty.
type fifo struct {
	head, tail *chunk
	off        int // of the first item in head
	n          int
}

// chunkItems is how many items one allocation holds.
const chunkItems = 42

type chunk struct {
	next  *chunk
	items []item
}

func (f *fifo) push(it item) {
	if f.tail == nil || len(f.tail.items) == chunkItems {
		c := &chunk{}
		if f.tail == nil {
			f.head = c
		} else {
			f.tail.next = c
			c.items = make([]item, 0, chunkItems)
		}
		f.tail = c
	}
	f.tail.items = append(f.tail.items, it)
	f.n++
}

// unshift puts its at the front, in their order.
func (f *fifo) unshift(its []item) {
	if len(its) == 0 {
		return
	}
	rest := *f
	*f = fifo{}
	for _, it := range its {
		f.push(it)
	}
	if rest.n == 0 {
		return
	}
	rest.head.items = rest.head.items[rest.off:]
	f.tail.next, f.tail = rest.head, rest.tail
	f.n += rest.n
}

// take appends up to limit items to out and removes them.
func (f *fifo) take(out []item, limit int) []item {
	if f.n == 0 {
		return out
	}
	for f.n > 0 && limit > 0 {
		k := min(len(f.head.items)-f.off, limit)
		out = append(out, f.head.items[f.off:f.off+k]...)
		clear(f.head.items[f.off : f.off+k])
		f.off += k
		f.n -= k
		limit -= k
		if f.off == len(f.head.items) && f.n > 0 {
			f.head, f.off = f.head.next, 0
		}
	}
	if f.n == 0 {
		f.reset()
	}
	return out
}

// reset keeps a small chunk for the next item and gives everything else back.
func (f *fifo) reset() {
	c := f.tail
	*f = fifo{}
	if cap(c.items) <= 4 {
		c.items, c.next = c.items[:0], nil
		f.head, f.tail = c, c
	}
}
