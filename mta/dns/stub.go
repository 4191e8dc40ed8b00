package dns

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/miekg/dns"
)

// Stub asks recursive name servers and caches their answers. It is safe for
// use by several goroutines.
type Stub struct {
	cfg    StubConfig
	limits limits
	cache  *cache
	hosts  *hostsFile
	slots  chan struct{} // one per request on the wire
	order  ordering

	base   context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex // protects the fields below; nothing else is locked under it
	calls  map[key]*call
	closed bool

	stats stubStats
}

var _ Resolver = (*Stub)(nil)

type stubStats struct{ hits, misses, queries, dropped atomic.Uint64 }

// StubStats counts since the Stub was made.
type StubStats struct {
	// CacheHits and CacheMisses count lookups.
	CacheHits, CacheMisses uint64
	// Queries counts requests sent, Dropped datagrams that were no answer to them.
	Queries, Dropped uint64
	// Cached is the number of answers in the cache now.
	Cached int
}

// NewStub returns a Stub, or an error that names the setting that is wrong.
func NewStub(cfg StubConfig) (*Stub, error) {
	cfg.Servers = slices.Clone(cfg.Servers)
	cfg.fill()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	search := make([]string, 0, len(cfg.Search))
	for _, d := range cfg.Search {
		n, err := Canonical(d)
		if err != nil {
			return nil, err
		}
		search = append(search, n)
	}
	cfg.Search = search
	s := &Stub{
		cfg:    cfg,
		limits: limits{cfg.PositiveMinTTL, cfg.PositiveMaxTTL, cfg.NegativeMinTTL, cfg.NegativeMaxTTL},
		cache:  newCache(cfg.CacheSize),
		hosts:  &hostsFile{path: cfg.HostsFile},
		slots:  make(chan struct{}, cfg.MaxQueries),
		calls:  make(map[key]*call),
	}
	s.order.rtt = make([]atomic.Int64, len(cfg.Servers))
	s.base, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

// Close ends all lookups and waits for them. Later lookups fail, unless the
// cache answers.
func (s *Stub) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
	return nil
}

// Stats returns the counters.
func (s *Stub) Stats() StubStats {
	return StubStats{
		CacheHits: s.stats.hits.Load(), CacheMisses: s.stats.misses.Load(),
		Queries: s.stats.queries.Load(), Dropped: s.stats.dropped.Load(),
		Cached: s.cache.len(),
	}
}

// Lookup answers from the hosts file, the cache or the servers.
func (s *Stub) Lookup(ctx context.Context, name string, qtype Type) (Answer, error) {
	n, rooted, err := canonical(name, qtype)
	if err != nil {
		return Answer{}, err
	}
	if qtype == TypeA || qtype == TypeAAAA {
		single := !rooted && strings.IndexByte(n, '.') < 0
		if s.cfg.Hosts == HostsAlways || s.cfg.Hosts == HostsAuto && single {
			if ans, ok, err := s.hosts.lookup(n, qtype); ok {
				return ans, err
			}
		}
		if !rooted && len(s.cfg.Search) > 0 && strings.Count(n, ".") < s.cfg.Ndots {
			return s.search(ctx, n, qtype)
		}
	}
	return s.lookup(ctx, n, qtype)
}

// search tries the name below each search domain, then the name itself.
func (s *Stub) search(ctx context.Context, n string, qtype Type) (Answer, error) {
	for _, d := range s.cfg.Search {
		long := n + "." + d
		if len(long) > maxName {
			continue
		}
		ans, err := s.lookup(ctx, long, qtype)
		if err == nil || !IsNotFound(err) {
			return ans, err
		}
	}
	return s.lookup(ctx, n, qtype)
}

func (s *Stub) lookup(ctx context.Context, n string, qtype Type) (Answer, error) {
	k := key{n, qtype}
	if ans, fail, ok := s.cache.get(k); ok {
		s.stats.hits.Add(1)
		if fail != nil {
			return Answer{}, fail
		}
		return ans, nil
	}
	if !qtype.served() {
		return Answer{}, &Error{Name: n, Type: qtype, Kind: BadName, Err: errors.New("record type is not served")}
	}
	s.stats.misses.Add(1)
	return s.join(ctx, k)
}

// resolve asks the servers, as often as the chain of aliases demands.
func (s *Stub) resolve(ctx context.Context, k key) (Answer, *Error) {
	total := Answer{Name: k.name, TTL: s.limits.posMax, Secure: true}
	for {
		p, err := s.ask(ctx, total.Name, k.qtype)
		if err != nil {
			if len(total.Aliases) > 0 { // the failure is that of the name asked for
				e := *err
				e.Name, e.TTL = k.name, min(e.TTL, total.TTL)
				e.Secure = e.Secure && total.Secure
				err = &e
			}
			return Answer{}, err
		}
		total.Aliases = append(total.Aliases, p.Aliases...)
		total.TTL = min(total.TTL, p.TTL)
		total.Secure = total.Secure && p.Secure
		total.Name, total.Records = p.Name, p.Records
		if p.next == "" {
			return total, nil
		}
		if len(total.Aliases) > maxChain || slices.Contains(total.Aliases, p.next) {
			return Answer{}, &Error{Name: k.name, Type: k.qtype, Kind: Loop, TTL: s.cfg.FailureTTL}
		}
	}
}

// ask puts one question to the servers until one gives a usable answer.
func (s *Stub) ask(ctx context.Context, name string, qtype Type) (part, *Error) {
	var last, no *Error
	order := s.order.next(s.cfg.Ordering)
	for range s.cfg.Attempts {
		for group := range slices.Chunk(order, s.cfg.Parallel) {
			p, err, final := s.askGroup(ctx, group, name, qtype)
			if final {
				return p, err
			}
			if ctx.Err() != nil {
				return part{}, contextError(name, qtype, ctx.Err())
			}
			if err.NotFound() {
				no = err
			} else {
				last = err
			}
		}
		if no != nil {
			return part{}, no // every server was heard
		}
	}
	e := *last
	e.TTL = s.cfg.FailureTTL
	return part{}, &e
}

type reply struct {
	p     part
	err   *Error
	final bool
}

// askGroup asks several servers at the same time; the first final answer wins,
// the others are cancelled and waited for.
func (s *Stub) askGroup(ctx context.Context, group []int, name string, qtype Type) (part, *Error, bool) {
	if len(group) == 1 {
		r := s.askOne(ctx, group[0], name, qtype)
		return r.p, r.err, r.final
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replies := make(chan reply, len(group))
	for _, i := range group {
		go func() { replies <- s.askOne(ctx, i, name, qtype) }()
	}
	var best reply
	for range group {
		r := <-replies
		switch {
		case best.final:
		case r.final:
			best = r
			cancel()
		case best.err == nil || r.err.NotFound():
			best = r
		}
	}
	return best.p, best.err, best.final
}

// askOne asks server i. The reply is final if no other server need be asked.
func (s *Stub) askOne(ctx context.Context, i int, name string, qtype Type) reply {
	srv := s.cfg.Servers[i]
	start := time.Now()
	m, err := s.exchange(ctx, srv, name, qtype)
	if err != nil {
		if ctx.Err() == nil {
			s.order.observe(i, s.cfg.Timeout)
		}
		return reply{err: &Error{Name: name, Type: qtype, Kind: kindOf(err), Err: err}}
	}
	s.order.observe(i, time.Since(start))
	p, fail := s.read(m, name, qtype)
	switch {
	case fail == nil:
		return reply{p: p, final: true}
	case fail.Kind == Loop, fail.Kind == Bogus: // the same everywhere
		fail.TTL = s.cfg.FailureTTL
		return reply{err: fail, final: true}
	case fail.NotFound():
		return reply{err: fail, final: !srv.DistrustNegative}
	}
	return reply{err: fail}
}

func (s *Stub) read(m *wire.Msg, name string, qtype Type) (part, *Error) {
	p, fail := extract(m, name, qtype, s.limits)
	if !s.cfg.TrustAD {
		p.Secure = false
		if fail != nil {
			fail.Secure = false
		}
	}
	return p, fail
}

// kindOf sorts the failures of a request.
func kindOf(err error) Kind {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errNotOurs), errors.Is(err, errTruncated):
		return Malformed
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	}
	return Network
}
