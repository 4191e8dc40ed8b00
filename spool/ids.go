package spool

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// version1 is the version field of an ID (RFC 9562 section 4.2).
const version1 = 0x1000

// clockStep is how far, in units of 100 ns, the clock may go back before IDs
// follow it: 10 seconds.
const clockStep = 10 * ticksPerSecond

// IDs makes unique IDs. Make one with [NewIDs]; its methods are safe for use by
// many goroutines and take no lock.
//
// IDs of Next are strictly increasing while the clock does not go back by more
// than 10 seconds. After such a step they follow the clock with another clock
// sequence, which keeps them unique (RFC 9562 section 6.3), so that a clock that
// was wrong for a while does not leave its mark on all later IDs.
type IDs struct {
	epoch atomic.Pointer[idEpoch]
	mu    sync.Mutex // serialises the change of epoch, nothing else
	now   func() time.Time
}

// idEpoch is a run of IDs with one clock sequence.
type idEpoch struct {
	tail [8]byte // variant, clock sequence and node
	last atomic.Uint64
}

// NewIDs returns a source of IDs with a random node (RFC 9562 section 6.10) and
// a random clock sequence.
func NewIDs() *IDs { return newIDs(time.Now) }

func newIDs(now func() time.Time) *IDs {
	g := &IDs{now: now}
	g.epoch.Store(&idEpoch{tail: randomTail()})
	return g
}

// randomTail returns variant, clock sequence and a node with the multicast bit,
// which no network card has (RFC 9562 section 6.10).
func randomTail() [8]byte {
	var t [8]byte
	_, _ = rand.Read(t[:])  // documented never to fail
	t[0] = t[0]&0x3f | 0x80 // variant (RFC 9562 section 4.1)
	t[2] |= 0x01            // multicast
	return t
}

// Next returns a new ID for the present time.
func (g *IDs) Next() ID {
	now := toTicks(g.now())
	for {
		e := g.epoch.Load()
		last := e.last.Load()
		tick := now
		if tick <= last {
			if last-tick > clockStep {
				g.advance(e, now)
				continue
			}
			tick = last + 1
		}
		if e.last.CompareAndSwap(last, tick) {
			return makeID(tick, e.tail)
		}
	}
}

// advance replaces the epoch old by one with the next clock sequence.
func (g *IDs) advance(old *idEpoch, now uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.epoch.Load() != old {
		return
	}
	e := &idEpoch{tail: old.tail}
	seq := binary.BigEndian.Uint16(e.tail[:2])
	binary.BigEndian.PutUint16(e.tail[:2], 0x8000|(seq+1)&0x3fff)
	e.last.Store(now)
	g.epoch.Store(e)
}

// NextAt returns a new ID for the foreign time t, to 100 ns. It is unique by 61
// random bits and does not influence the IDs of Next. A time outside the years
// 1582 to 5236 is moved to the nearest end.
func (g *IDs) NextAt(t time.Time) ID {
	return makeID(toTicks(t), randomTail())
}

func makeID(ticks uint64, tail [8]byte) ID {
	var id ID
	putTicks(&id, ticks, version1)
	copy(id[8:], tail[:])
	return id
}

// toTicks returns t in units of 100 ns since 1582-10-15, within 60 bits.
func toTicks(t time.Time) uint64 {
	const minSec, maxSec = -gregorianTicks / ticksPerSecond, (maxTicks - gregorianTicks) / ticksPerSecond
	sec := t.Unix()
	switch {
	case sec < minSec:
		return 0
	case sec >= maxSec:
		return maxTicks
	}
	return uint64(sec*ticksPerSecond + int64(t.Nanosecond())/100 + gregorianTicks)
}
