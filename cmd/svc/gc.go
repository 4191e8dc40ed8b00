package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// smallHeap is the heap size in bytes below which the garbage collector is not worth running: a server with an empty
// queue keeps little and allocates much, so that by its own rule the collector would run all the time.
const smallHeap = 112 << 20

// tuneGC makes the collector wait until the heap has grown to smallHeap, and by 60 % when what is alive is more than that
// allows: a long queue is many small things that stay, and what is not collected costs memory. Nothing is changed when the run time's own variable GOGC is set.
func tuneGC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	t := &gcTuner{sample: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	t.adjust()
	t.arm()
}

// gcTuner sets the growth after each run of the collector.
type gcTuner struct {
	sample []metrics.Sample
}

// arm has adjust called after the next run: a new object without references is found dead then.
func (t *gcTuner) arm() {
	sentinel := new([16]byte)
	runtime.SetFinalizer(sentinel, func(*[16]byte) {
		t.adjust()
		t.arm()
	})
}

// adjust sets the growth by what was alive after the last run.
func (t *gcTuner) adjust() {
	metrics.Read(t.sample)
	debug.SetGCPercent(growth(t.sample[0].Value.Uint64()))
}

// growth is the percentage of live bytes that may be allocated before the next run.
func growth(live uint64) int {
	const least, most = 60, 1000
	live = max(live, 1<<20)
	if live >= smallHeap {
		return least
	}
	return int(min(max((smallHeap-live)*100/live, least), most))
}
