package netmap

import (
	"fmt"
	"iter"
	"maps"
	"strings"
	"sync"
)

// maxName bounds the names that are looked up, in bytes: what RFC 1035 section 2.3.4 allows, rounded up.
const maxName = 256

// Domain maps domain names to values. A key is a name, or "*." and a name for all names below it, at any depth, but
// not that name itself; "*" stands for all names. The zero value is empty and ready for use. It is safe for concurrent
// use and may not be copied.
type Domain[V any] struct {
	mu    sync.RWMutex
	exact map[string]V
	below map[string]V // by the name without "*."
}

// Set gives a key its value and replaces the one it had. It refuses empty and overlong names, empty labels and a "*"
// elsewhere than in front.
func (d *Domain[V]) Set(key string, v V) error {
	name, wild, err := parseKey(key)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := &d.exact
	if wild {
		m = &d.below
	}
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[name] = v
	return nil
}

// Delete removes a key and reports whether it was there.
func (d *Domain[V]) Delete(key string) bool {
	name, wild, err := parseKey(key)
	if err != nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.exact
	if wild {
		m = d.below
	}
	_, ok := m[name]
	delete(m, name)
	return ok
}

// Lookup returns the value of name, else that of the longest wildcard above it, and whether there is one. It does not
// allocate for names in lower case.
func (d *Domain[V]) Lookup(name string) (V, bool) {
	var none V
	name = fold(name)
	if name == "" || len(name) > maxName {
		return none, false
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	if v, ok := d.exact[name]; ok {
		return v, true
	}
	if len(d.below) == 0 {
		return none, false
	}
	for rest, ok := parent(name); ok; rest, ok = parent(rest) {
		if v, ok := d.below[rest]; ok {
			return v, true
		}
	}
	v, ok := d.below[""]
	return v, ok
}

// Len returns the number of keys.
func (d *Domain[V]) Len() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.exact) + len(d.below)
}

// All iterates over the keys, in no particular order, as they were when the iteration began. Wildcards are written as
// they are set.
func (d *Domain[V]) All() iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		d.mu.RLock()
		exact, below := maps.Clone(d.exact), maps.Clone(d.below)
		d.mu.RUnlock()
		for name, v := range exact {
			if !yield(name, v) {
				return
			}
		}
		for name, v := range below {
			key := "*"
			if name != "" {
				key = "*." + name
			}
			if !yield(key, v) {
				return
			}
		}
	}
}

// parent cuts the first label off.
func parent(name string) (string, bool) {
	_, rest, ok := strings.Cut(name, ".")
	return rest, ok
}

// fold brings a name into the form of N2.
func fold(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

func parseKey(key string) (name string, wild bool, err error) {
	if key == "*" {
		return "", true, nil
	}
	name, wild = strings.CutPrefix(fold(key), "*.")
	switch {
	case name == "", strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.Contains(name, ".."):
		return "", false, fmt.Errorf("invalid domain %.80q: a label is empty", key)
	case len(name) > maxName:
		return "", false, fmt.Errorf("invalid domain %.80q: it is longer than %d bytes", key, maxName)
	case strings.Contains(name, "*"):
		return "", false, fmt.Errorf(`invalid domain %.80q: "*" may stand in front only, as in "*.example.com"`, key)
	}
	return name, wild, nil
}
