package journal

import (
	"context"
	"log/slog"
	"sync"

	"example.com/svc/mta"
)

// keepBuffer is the largest buffer that goes back into the pool, in bytes.
const keepBuffer = 64 << 10

// line is one encoded record on its way to a file, or a request to the goroutine of a logger.
type line struct {
	buf []byte
	to  *target
	do  func() // runs instead of writing buf, if set
}

// linePool lends lines. The zero value is ready for use.
type linePool struct{ pool sync.Pool }

// get returns a line with an empty buffer.
func (p *linePool) get() *line {
	if ln, ok := p.pool.Get().(*line); ok {
		return ln
	}
	return &line{buf: make([]byte, 0, 2048)}
}

// put takes a line back. The caller may not use it any more.
func (p *linePool) put(ln *line) {
	if ln.do != nil || cap(ln.buf) > keepBuffer {
		return
	}
	ln.buf, ln.to = ln.buf[:0], nil
	p.pool.Put(ln)
}

// source is what a record is made of, for one call of Record. Metadata and data are loaded at most once.
type source struct {
	log *slog.Logger
	m   *mta.Message
	r   *mta.Record

	meta                   *mta.Meta
	data                   []byte
	metaLoaded, dataLoaded bool
}

// reception returns the reception protocol: that of the record, else the message's own (logs.md section 1).
func (s *source) reception(ctx context.Context) string {
	if s.r.ReceptionProtocol != "" || s.m == nil || s.r.Type == mta.RejectionRecord {
		return s.r.ReceptionProtocol
	}
	meta := s.getMeta(ctx)
	if meta == nil {
		return ""
	}
	return meta.String(mta.MetaReceptionProtocol)
}

// getMeta returns the metadata, nil when there are none.
func (s *source) getMeta(ctx context.Context) *mta.Meta {
	if s.metaLoaded || s.m == nil {
		return s.meta
	}
	s.metaLoaded = true
	meta, err := s.m.Meta(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "a log record is written without metadata",
			"id", s.r.ID.String(), "type", string(s.r.Type), "error", err)
		return nil
	}
	s.meta = meta
	return meta
}

// getData returns the content of the message, nil when there is none.
func (s *source) getData(ctx context.Context) []byte {
	if s.dataLoaded || s.m == nil {
		return s.data
	}
	s.dataLoaded = true
	data, err := s.m.Data(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "a log record is written without headers",
			"id", s.r.ID.String(), "type", string(s.r.Type), "error", err)
		return nil
	}
	s.data = data
	return data
}
