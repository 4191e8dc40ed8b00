package bolt

import "sync/atomic"

// Stats counts what a spool did since it was opened.
type Stats struct {
	// Puts and Deletes are changes that were committed.
	Puts, Deletes uint64
	// Batches are transactions that carried them.
	Batches uint64
	// Salvaged and Lost are records found and given up in a damaged database
	// when the spool was opened.
	Salvaged, Lost uint64
}

// AverageBatch returns the changes that one transaction carried, 0 without any.
func (s Stats) AverageBatch() float64 {
	if s.Batches == 0 {
		return 0
	}
	return float64(s.Puts+s.Deletes) / float64(s.Batches)
}

type counters struct {
	puts, deletes, batches, salvaged, lost atomic.Uint64
}

// committed counts a batch and returns how many records it touched.
func (c *counters) committed(batch []*op) int {
	var puts, deletes uint64
	for _, o := range batch {
		if o.move != nil {
			continue // set aside, neither stored nor removed
		}
		if o.puts {
			puts += uint64(len(o.entries))
		} else {
			deletes += uint64(len(o.entries))
		}
	}
	c.puts.Add(puts)
	c.deletes.Add(deletes)
	c.batches.Add(1)
	return int(puts + deletes)
}

// Stats returns the counts so far. It may be called at any time.
func (s *Spool) Stats() Stats {
	c := &s.counts
	return Stats{
		Puts: c.puts.Load(), Deletes: c.deletes.Load(), Batches: c.batches.Load(),
		Salvaged: c.salvaged.Load(), Lost: c.lost.Load(),
	}
}
