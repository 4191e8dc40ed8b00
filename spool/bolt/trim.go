package bolt

import "sync/atomic"

// trimEvery is how many records may be touched before the pages of the map are
// dropped from this process's memory. A touched record maps about 64 KB, since
// the kernel maps around a fault, so this keeps the map below some 64 MB.
const trimEvery = 1024

// trimmer keeps the resident part of the memory map small. The pages stay in the
// page cache of the system; only this process forgets them.
type trimmer struct{ records atomic.Int64 }

// touched notes that n records were read through the map.
func (t *trimmer) touched(s *Spool, n int) {
	if t.records.Add(int64(n)) < trimEvery || t.records.Swap(0) < trimEvery {
		return
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db != nil {
		s.dropPages()
	}
}
