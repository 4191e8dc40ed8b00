package netmap

import (
	"fmt"
	"iter"
	"net/netip"
	"strings"
	"sync"

	"github.com/gaissmai/bart"
)

// CIDR maps address blocks to values. The zero value is empty and ready for use. It is safe for concurrent use and may
// not be copied.
type CIDR[V any] struct {
	mu  sync.RWMutex
	tab bart.Table[V]
}

// Set gives a block its value and replaces the one it had. Host bits must be zero.
func (c *CIDR[V]) Set(block netip.Prefix, v V) error {
	p, err := plainPrefix(block)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tab.Insert(p, v)
	return nil
}

// SetString is Set for a block in text form, or for a plain address, which is the block of itself.
func (c *CIDR[V]) SetString(block string, v V) error {
	p, err := ParsePrefix(block)
	if err != nil {
		return err
	}
	return c.Set(p, v)
}

// Delete removes a block and reports whether it was there.
func (c *CIDR[V]) Delete(block netip.Prefix) bool {
	p, err := plainPrefix(block)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.tab.Size()
	c.tab.Delete(p)
	return c.tab.Size() < n
}

// Lookup returns the value of the most specific block that contains a, and whether there is one.
func (c *CIDR[V]) Lookup(a netip.Addr) (V, bool) {
	a = plainAddr(a)
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tab.Lookup(a)
}

// Match is Lookup that also returns the block, for explanations.
func (c *CIDR[V]) Match(a netip.Addr) (netip.Prefix, V, bool) {
	a = plainAddr(a)
	if !a.IsValid() {
		var none V
		return netip.Prefix{}, none, false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tab.LookupPrefixLPM(netip.PrefixFrom(a, a.BitLen()))
}

// Len returns the number of blocks.
func (c *CIDR[V]) Len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.tab.Size()
}

// All iterates over the blocks in order of address, shorter prefixes first, as they were when the iteration began.
func (c *CIDR[V]) All() iter.Seq2[netip.Prefix, V] {
	return func(yield func(netip.Prefix, V) bool) {
		c.mu.RLock()
		snap := c.tab.Clone()
		c.mu.RUnlock()
		snap.AllSorted()(yield)
	}
}

// ParsePrefix reads a block, or a plain address as the block of itself. Host bits must be zero.
func ParsePrefix(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("invalid address block %.80q", s)
		}
		return plainPrefix(p)
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("invalid address %.80q", s)
	}
	a = plainAddr(a)
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// plainAddr brings an address into the form of N1.
func plainAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

// plainPrefix brings a block into the form of N1.
func plainPrefix(p netip.Prefix) (netip.Prefix, error) {
	if !p.IsValid() {
		return p, fmt.Errorf("invalid address block %s", p)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return p, fmt.Errorf("invalid address block %s: it is wider than the IPv4-mapped addresses", p)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	if m := p.Masked(); m != p {
		return p, fmt.Errorf("invalid address block %s: host bits are set, did you mean %s?", p, m)
	}
	return p, nil
}
