package bolt

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"go.etcd.io/bbolt"
)

// Options tunes a spool. The zero value is the durable default.
type Options struct {
	// NoSync leaves flushing to the operating system: faster, and a power loss
	// loses what was acknowledged (setting flush = false).
	NoSync bool
	// PageSize is the size of database pages in bytes, a power of two, used when
	// the file is created. Zero means 16 KiB, which holds several small values
	// and values of 10 KB in few pages; see the benchmarks of this package.
	PageSize int
	// Log receives what is done about damage and trouble. Nil means slog.Default.
	Log *slog.Logger
	// OpenFile opens the database file and the files of the log. Nil means
	// os.OpenFile.
	OpenFile func(name string, flag int, perm os.FileMode) (*os.File, error)

	// commit ends a transaction; tests replace it to make it fail. Then there is
	// no log, so that every change is a transaction.
	commit func(*bbolt.Tx) error
	direct bool
	// flush brings a file of the log to stable storage; tests replace it.
	flush func(*os.File) error
	// probeEvery is how often a full disk is tried again.
	probeEvery time.Duration
}

const (
	// batchOps and batchBytes limit what one transaction collects. A single
	// batch of a caller may exceed them, since it is never split.
	batchOps   = 1024
	batchBytes = 4 << 20

	// defaultPage is the size of database pages in bytes.
	defaultPage = 16 << 10
	// defaultProbe is how often a full disk is tried again.
	defaultProbe = time.Second
	// lockTimeout is how long the database may wait for its own file lock.
	lockTimeout = 100 * time.Millisecond
	// mapSize is the address space reserved for the database at first on 64-bit
	// systems, so that growing seldom has to wait for readers.
	mapSize = 1 << 30
)

func (o Options) withDefaults() (Options, error) {
	if o.PageSize != 0 && (o.PageSize < 1024 || o.PageSize > 64<<10 || o.PageSize&(o.PageSize-1) != 0) {
		return o, errors.New("page size must be a power of two from 1024 to 65536")
	}
	if o.PageSize == 0 {
		o.PageSize = defaultPage
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.OpenFile == nil {
		o.OpenFile = os.OpenFile
	}
	if o.commit == nil {
		o.commit = (*bbolt.Tx).Commit
	} else {
		o.direct = true
	}
	if o.flush == nil {
		o.flush = flushData
	}
	if o.probeEvery == 0 {
		o.probeEvery = defaultProbe
	}
	return o, nil
}
