package bolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"example.com/svc/spool"
	"example.com/svc/spool/internal/dirlock"
)

// dbName is the file in the spool's directory that holds the database.
const dbName = "spool.db"

var (
	bucketValues     = []byte("values")
	bucketQuarantine = []byte("quarantine")
	bucketProbe      = []byte("probe")
)

// Spool is a spool in one bbolt database. It is safe for use by many goroutines.
type Spool struct {
	dir  string
	file string
	opts Options
	lock *dirlock.Lock

	// mu protects db against being exchanged or closed while readers use it.
	// The writer goroutine is the only one that changes db. mu is taken before
	// any lock of the database and never together with queue.mu.
	mu sync.RWMutex
	db *bbolt.DB // nil after Close or a failed reopening
	fd *os.File  // the file under db

	log     log
	queue   queue
	stopped chan struct{}             // closed when the writer has ended (G1)
	trouble atomic.Pointer[condition] // nil while healthy
	stuck   bool                      // a transaction could not be ended; owned by the writer
	trim    trimmer
	counts  counters
}

var (
	_ spool.Spool       = (*Spool)(nil)
	_ spool.Batcher     = (*Spool)(nil)
	_ spool.Chainer     = (*Spool)(nil)
	_ spool.Quarantiner = (*Spool)(nil)
	_ spool.Loader      = (*Spool)(nil)
	_ spool.Healther    = (*Spool)(nil)
)

// Open opens the spool in directory path and makes it when it is missing. A
// damaged database is salvaged first, see the package comment. The error is
// spool.ErrLocked when another process, or another spool of this one, holds it.
func Open(path string, o Options) (*Spool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("open spool %s: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o750); err != nil {
		return nil, fmt.Errorf("make spool directory: %w", err)
	}
	lock, err := dirlock.Acquire(path)
	if err != nil {
		return nil, err
	}
	s := &Spool{
		dir: path, file: filepath.Join(path, dbName), opts: o, lock: lock,
		stopped: make(chan struct{}),
	}
	s.queue.init()
	s.log.init()
	err = s.openChecked()
	if err == nil {
		if err = s.replay(); err != nil {
			err = errors.Join(err, s.closeDB())
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open spool %s: %w", path, err), lock.Release())
	}
	go s.write()
	return s, nil
}

// openChecked opens the database, salvaging it before when it is damaged and
// once more when the database itself finds what the check did not.
func (s *Spool) openChecked() error {
	damaged, err := s.damaged()
	if err != nil {
		return err
	}
	if !damaged {
		err := s.openDB()
		if err == nil || !isDamage(err) {
			return err
		}
		s.opts.Log.Error("spool database cannot be opened, salvaging", "path", s.file, "error", err)
	}
	if err := s.salvage(); err != nil {
		return fmt.Errorf("salvage: %w", err)
	}
	return s.openDB()
}

// openDB opens the file and makes its buckets.
func (s *Spool) openDB() error {
	var db *bbolt.DB
	var fd *os.File
	o := s.boltOptions(&fd)
	err := guard(s.file, func() (err error) {
		db, err = bbolt.Open(s.file, 0o600, o)
		return err
	})
	if err == nil {
		err = guard(s.file, func() error { return makeBuckets(db) })
		if err == nil {
			err = syncDir(s.dir)
		}
		if err != nil {
			_ = guard(s.file, db.Close) // err tells more
		}
	}
	if err != nil {
		if fd != nil {
			_ = fd.Close() // releases the lock when a panic left it open
		}
		if errors.Is(err, bolterrors.ErrTimeout) {
			return fmt.Errorf("%w: %s", spool.ErrLocked, s.file)
		}
		return err
	}
	db.AllocSize = 64 << 20
	s.db, s.fd = db, fd
	s.dropPages()
	return nil
}

func (s *Spool) boltOptions(fd **os.File) *bbolt.Options {
	o := &bbolt.Options{
		Timeout:        lockTimeout,
		NoFreelistSync: true, // rebuilt at start; else it is written with each commit
		FreelistType:   bbolt.FreelistMapType,
		PageSize:       s.opts.PageSize,
		NoSync:         s.opts.NoSync,
		NoGrowSync:     s.opts.NoSync,
		NoStatistics:   true,
		OpenFile: func(name string, flag int, perm os.FileMode) (*os.File, error) {
			f, err := s.opts.OpenFile(name, flag, perm)
			*fd = f
			return f, err
		},
	}
	if mapAhead && strconv.IntSize == 64 {
		o.InitialMmapSize = mapSize
	}
	return o
}

func makeBuckets(db *bbolt.DB) error {
	missing := false
	err := db.View(func(tx *bbolt.Tx) error {
		missing = tx.Bucket(bucketValues) == nil || tx.Bucket(bucketQuarantine) == nil
		return nil
	})
	if err != nil || !missing {
		return err
	}
	return db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketValues, bucketQuarantine} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
}

// syncDir makes the names in dir durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if isUnsupportedSync(err) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// Close waits for the writes that were asked for and closes the database.
func (s *Spool) Close() error {
	if !s.queue.close() {
		<-s.stopped
		return nil
	}
	<-s.stopped
	needed := s.Health() != nil
	if !needed {
		if err := s.empty(); err != nil { // the next start moves the rest
			needed = true
			s.opts.Log.Warn("spool keeps its log until the next start", "path", s.dir, "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.closeDB(), s.closeLog(needed), s.lock.Release())
}

// closeDB closes the database; mu is held. A database with a transaction that
// could not be ended would wait for it forever: then only its file is closed.
func (s *Spool) closeDB() error {
	db, fd := s.db, s.fd
	s.db, s.fd = nil, nil
	if db == nil {
		return nil
	}
	if s.stuck {
		return fd.Close()
	}
	if err := guard(s.file, db.Close); err != nil {
		return fmt.Errorf("close spool %s: %w", s.dir, err)
	}
	return nil
}
