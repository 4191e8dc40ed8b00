package load

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// Fate is what the sink is going to do with a message, decided by its number alone.
type Fate uint8

// Fates.
const (
	Accept       Fate = iota
	TempFailRcpt      // 4xx to the first RCPT
	TempFailData      // 4xx to the first end of data
	Reject            // 5xx to RCPT
)

// Ledger keeps the story of every message of one run. It is safe for concurrent use.
type Ledger struct {
	start    time.Time
	accepted []atomic.Int64 // nanoseconds after start, when the server under test answered 250
	arrived  []atomic.Int64 // nanoseconds after start, of the first arrival
	copies   []atomic.Uint32
	tempfail []atomic.Uint32 // temporary refusals given
	rejected []atomic.Uint32
	foreign  atomic.Int64 // arrivals without a number of this run
	corrupt  atomic.Int64 // arrivals whose content differs from what was sent
	sums     atomic.Pointer[func(id int) (sum uint32, known bool)]

	tempShare, rejectShare float64
	delivered              atomic.Int64
	acceptedCount          atomic.Int64
	lastArrival            atomic.Int64
}

// NewLedger makes a ledger for n messages of which the sink temp-fails one share and rejects another, each from 0 to 1.
func NewLedger(n int, tempFail, reject float64) *Ledger {
	return &Ledger{
		start:     time.Now(),
		accepted:  make([]atomic.Int64, n),
		arrived:   make([]atomic.Int64, n),
		copies:    make([]atomic.Uint32, n),
		tempfail:  make([]atomic.Uint32, n),
		rejected:  make([]atomic.Uint32, n),
		tempShare: tempFail, rejectShare: reject,
	}
}

// Len returns the number of messages of the run.
func (l *Ledger) Len() int { return len(l.accepted) }

// Fate tells what the sink does with message id: the shares are spread evenly over the numbers.
func (l *Ledger) Fate(id int) Fate {
	x := float64(uint32(id)*2654435761>>8&0xffff) / 0x10000
	switch {
	case x < l.rejectShare:
		return Reject
	case x < l.rejectShare+l.tempShare/2:
		return TempFailRcpt
	case x < l.rejectShare+l.tempShare:
		return TempFailData
	}
	return Accept
}

func (l *Ledger) now() int64 { return max(int64(time.Since(l.start)), 1) }

// Accepted notes that the server took responsibility for message id.
func (l *Ledger) Accepted(id int) {
	if l.accepted[id].CompareAndSwap(0, l.now()) {
		l.acceptedCount.Add(1)
	}
}

// Expect tells what the content of each message adds up to (CRC-32C) behind the line with its number; known is false for
// messages whose content is not checked.
func (l *Ledger) Expect(sum func(id int) (sum uint32, known bool)) { l.sums.Store(&sum) }

// intact checks the content of message id, and counts it when it is not as sent.
func (l *Ledger) intact(id int, sum uint32) bool {
	f := l.sums.Load()
	if f == nil {
		return true
	}
	if want, known := (*f)(id); known && want != sum {
		l.corrupt.Add(1)
		return false
	}
	return true
}

// refuse notes a temporary refusal of id and reports whether it is the first.
func (l *Ledger) refuse(id int) bool { return l.tempfail[id].Add(1) == 1 }

// Arrived notes an arrival of id.
func (l *Ledger) Arrived(id int) {
	now := l.now()
	if l.copies[id].Add(1) == 1 {
		l.arrived[id].Store(now)
		l.delivered.Add(1)
	}
	l.lastArrival.Store(now)
}

// Progress returns how many messages were accepted, have arrived, and were rejected so far.
func (l *Ledger) Progress() (accepted, arrived, rejected int) {
	for i := range l.rejected {
		if l.rejected[i].Load() > 0 {
			rejected++
		}
	}
	return int(l.acceptedCount.Load()), int(l.delivered.Load()), rejected
}

// Missing returns how many accepted messages have neither arrived nor been rejected.
func (l *Ledger) Missing() int {
	n := 0
	for i := range l.accepted {
		if l.accepted[i].Load() > 0 && l.copies[i].Load() == 0 && l.rejected[i].Load() == 0 {
			n++
		}
	}
	return n
}

// Result is the outcome of a run.
type Result struct {
	Messages   int     `json:"messages"`
	Accepted   int     `json:"accepted"`
	Delivered  int     `json:"delivered"`
	Deferred   int     `json:"deferred_and_delivered_later"`
	Rejected   int     `json:"rejected"`
	Lost       int     `json:"lost"`
	Duplicated int     `json:"duplicated"`
	Unexpected int     `json:"arrived_without_being_accepted"`
	Foreign    int     `json:"foreign"`
	Corrupted  int     `json:"corrupted"`
	Seconds    float64 `json:"seconds"`
	Rate       float64 `json:"messages_per_second"`
	P50        float64 `json:"p50_ms"`
	P99        float64 `json:"p99_ms"`
	Max        float64 `json:"max_ms"`
}

// Result sums the ledger up. The rate counts arrivals from the start of the run to the last arrival.
func (l *Ledger) Result() Result {
	r := Result{Messages: l.Len(), Foreign: int(l.foreign.Load()), Corrupted: int(l.corrupt.Load())}
	var waits []int64
	for i := range l.accepted {
		acc, copies, rej := l.accepted[i].Load(), l.copies[i].Load(), l.rejected[i].Load()
		if acc > 0 {
			r.Accepted++
		}
		if copies > 1 {
			r.Duplicated++
		}
		switch {
		case copies > 0:
			r.Delivered++
			if l.tempfail[i].Load() > 0 {
				r.Deferred++
			}
			if acc == 0 {
				r.Unexpected++
				break
			}
			waits = append(waits, max(l.arrived[i].Load()-acc, 0))
		case rej > 0:
			r.Rejected++
		case acc > 0:
			r.Lost++
		}
	}
	r.Seconds = time.Duration(l.lastArrival.Load()).Seconds()
	if r.Seconds > 0 {
		r.Rate = float64(r.Delivered) / r.Seconds
	}
	slices.Sort(waits)
	r.P50, r.P99, r.Max = quantile(waits, 0.5), quantile(waits, 0.99), quantile(waits, 1)
	return r
}

// quantile returns the q-quantile of sorted nanoseconds in milliseconds.
func quantile(sorted []int64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	i := min(int(q*float64(len(sorted))), len(sorted)-1)
	return float64(sorted[i]) / 1e6
}

// Check returns an error that says what is wrong with the run: lost, duplicated, foreign or changed messages.
func (r Result) Check() error {
	if r.Lost == 0 && r.Duplicated == 0 && r.Foreign == 0 && r.Corrupted == 0 {
		return nil
	}
	return fmt.Errorf("%d lost, %d duplicated, %d foreign, %d corrupted of %d accepted messages", r.Lost, r.Duplicated,
		r.Foreign, r.Corrupted, r.Accepted)
}
