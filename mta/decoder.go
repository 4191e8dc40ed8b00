package mta

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

var (
	errMetaShort = errors.New("metadata record ends early")
	errMetaEnd   = errors.New("metadata record has bytes after its end")
	errMetaDepth = fmt.Errorf("metadata value is nested over %d levels", maxMetaDepth)
)

// decoder reads the parts of a record; after the first error every read gives a zero value. What it returns shares
// memory with s. It allocates in proportion to what is left of s, never to what s claims.
type decoder struct {
	s   string
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.s = ""
}

// end returns the first error; bytes that were not read are one.
func (d *decoder) end() error {
	if d.err == nil && d.s != "" {
		d.fail(errMetaEnd)
	}
	return d.err
}

func (d *decoder) byte() byte {
	if d.s == "" {
		d.fail(errMetaShort)
		return 0
	}
	c := d.s[0]
	d.s = d.s[1:]
	return c
}

func (d *decoder) take(n int) string {
	if n > len(d.s) {
		d.fail(errMetaShort)
		return ""
	}
	p := d.s[:n]
	d.s = d.s[n:]
	return p
}

func (d *decoder) uvarint() uint64 {
	if d.s != "" && d.s[0] < 0x80 { // nearly all are small
		return uint64(d.byte())
	}
	var v uint64
	for i := range min(len(d.s), binary.MaxVarintLen64) {
		c := d.s[i]
		if i == binary.MaxVarintLen64-1 && c > 1 {
			break // over 64 bits
		}
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.s = d.s[i+1:]
			return v
		}
	}
	d.fail(errMetaShort)
	return 0
}

func (d *decoder) varint() int64 {
	u := d.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// count reads how many entries of at least size bytes follow. More than there is room for is an error.
func (d *decoder) count(size int) int {
	n := d.uvarint()
	if n > uint64(len(d.s)/size) {
		d.fail(fmt.Errorf("metadata record claims %d entries in %d bytes", n, len(d.s)))
		return 0
	}
	return int(n)
}

func (d *decoder) string() string { return d.take(d.count(1)) }

// value reads one value of a [Meta].
func (d *decoder) value(depth int) any {
	if depth > maxMetaDepth {
		d.fail(errMetaDepth)
		return nil
	}
	switch t := d.byte(); t {
	case 's':
		return d.string()
	case 't':
		return true
	case 'f':
		return false
	case 'n':
		return nil
	case 'i':
		return d.varint()
	case 'd':
		p := d.take(8)
		if d.err != nil {
			return nil
		}
		return math.Float64frombits(binary.BigEndian.Uint64([]byte(p)))
	case 'a':
		return d.array(depth)
	case 'm':
		return d.object(depth)
	case 'j':
		var v any
		if err := json.Unmarshal([]byte(d.string()), &v); err != nil {
			d.fail(fmt.Errorf("metadata value: %w", err))
		}
		return v
	default:
		d.fail(fmt.Errorf("metadata value of unknown type %q", t))
		return nil
	}
}

// array reads the elements of a list. It grows with what is found: a nested claim is not believed in advance.
func (d *decoder) array(depth int) any {
	n := d.count(1)
	a := make([]any, 0, min(n, 16))
	for range n {
		a = append(a, d.value(depth+1))
		if d.err != nil {
			return nil
		}
	}
	return a
}

func (d *decoder) object(depth int) any {
	n := d.count(2)
	m := make(map[string]any, min(n, 16))
	for range n {
		key := d.string()
		m[key] = d.value(depth + 1)
		if d.err != nil {
			return nil
		}
	}
	return m
}
