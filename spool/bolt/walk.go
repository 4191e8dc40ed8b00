package bolt

import (
	"bytes"
	"errors"
	"fmt"
)

// keyRange is from lo up to and without hi; nil means no bound.
type keyRange struct{ lo, hi []byte }

func (r keyRange) contains(key []byte) bool {
	return bytes.Compare(key, r.lo) >= 0 && (r.hi == nil || bytes.Compare(key, r.hi) < 0)
}

// walker visits the leaves of a tree, passes over damage and notes the ranges of
// keys that it could not see.
type walker struct {
	f       *dbFile
	seen    map[uint64]bool // pages in use: a page reached twice is damage
	lost    []keyRange
	problem error // the first
	visit   func(l leaf) error
}

// tree walks the tree under page n, whose keys lie in r.
func (w *walker) tree(n uint64, r keyRange, depth int) error {
	p, err := w.enter(n, depth)
	if err != nil {
		w.lose(r, err)
		return nil
	}
	return w.page(p, r, depth)
}

func (w *walker) enter(n uint64, depth int) (*page, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%w %d: tree too deep", errPage, n)
	}
	p, err := w.f.read(n)
	if err != nil {
		return nil, err
	}
	for i := n; i <= n+uint64(p.overflow()); i++ {
		if w.seen[i] || i >= w.f.pages {
			return nil, fmt.Errorf("%w %d: used twice or beyond the end", errPage, n)
		}
		w.seen[i] = true
	}
	return p, nil
}

func (w *walker) lose(r keyRange, err error) {
	w.lost = append(w.lost, r)
	if w.problem == nil {
		w.problem = err
	}
}

// page walks one page. Keys must rise and lie in r; from the first that does not
// the rest of the page is lost.
func (w *walker) page(p *page, r keyRange, depth int) error {
	if p.kind() == kindLeaf {
		return w.leaves(p, r)
	}
	type childPage struct {
		key  []byte
		page uint64
	}
	children := make([]childPage, 0, p.count())
	for i := range p.count() {
		key, n, err := p.child(i)
		if err != nil {
			w.lose(r, err)
			return nil
		}
		rising := i == 0 || bytes.Compare(children[i-1].key, key) < 0
		if !rising || i > 0 && !r.contains(key) {
			w.lose(r, fmt.Errorf("%w: keys out of order", errPage))
			return nil
		}
		children = append(children, childPage{bytes.Clone(key), n})
	}
	for i, c := range children {
		sub := keyRange{lo: c.key, hi: r.hi}
		if i == 0 {
			sub.lo = r.lo
		}
		if i+1 < len(children) {
			sub.hi = children[i+1].key
		}
		if err := w.tree(c.page, sub, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) leaves(p *page, r keyRange) error {
	from := keyRange{lo: bytes.Clone(r.lo), hi: r.hi}
	var prev []byte
	for i := range p.count() {
		l, err := p.leaf(i)
		if err == nil && (prev != nil && bytes.Compare(prev, l.key) >= 0 || !r.contains(l.key)) {
			err = fmt.Errorf("%w: keys out of order", errPage)
		}
		if err != nil {
			w.lose(from, err)
			return nil
		}
		if err := w.visit(l); err != nil {
			return err
		}
		prev = l.key
		from.lo = append(bytes.Clone(l.key), 0)
	}
	return nil
}

// buckets walks the root and the two buckets that hold records.
func (w *walker) buckets(visit func(bucket []byte, l leaf) error) error {
	found := map[string][]byte{}
	w.visit = func(l leaf) error {
		v, err := l.value()
		if err == nil && l.bucket && len(v) >= bucketHeader {
			found[string(l.key)] = bytes.Clone(v)
		}
		return nil
	}
	if err := w.tree(w.f.root, keyRange{}, 0); err != nil {
		return err
	}
	for _, name := range [][]byte{bucketValues, bucketQuarantine} {
		head, ok := found[string(name)]
		if !ok {
			if w.problem != nil || len(found) > 0 {
				w.lose(keyRange{}, errNoBuckets)
			}
			continue
		}
		w.visit = func(l leaf) error { return visit(name, l) }
		before := len(w.lost)
		if err := w.bucket(head); err != nil {
			return err
		}
		if bytes.Equal(name, bucketQuarantine) {
			w.lost = w.lost[:before] // raw pages do not tell such records; the old file keeps them
		}
	}
	return nil
}

func (w *walker) bucket(head []byte) error {
	if root := order.Uint64(head); root != 0 {
		return w.tree(root, keyRange{}, 0)
	}
	p, err := inlinePage(head[bucketHeader:])
	if err == nil && p.kind() != kindLeaf {
		err = errors.New("small bucket without leaf")
	}
	if err != nil {
		w.lose(keyRange{}, err)
		return nil
	}
	return w.page(p, keyRange{}, 0)
}
