package egress

import (
	"sync"

	"example.com/svc/mta"
	"example.com/svc/mta/metric"
)

// metrics are the instruments of a Manager (metrics.tsv).
type metrics struct {
	connections, ready                   *metric.Gauge
	connectionsTotal, readyFull, aborted *metric.Counter
	connsProvider, connsPool             *metric.Gauge
	queuedProvider, queuedPool           *metric.Gauge
	outcomes                             [3]outcomeFamilies // by mta.Disposition
	latency                              *metric.Histogram
	insertLatency                        *metric.HistogramValue
	runs                                 *metric.CounterValue

	mu        sync.Mutex // guards users
	users     map[string]int
	protocols map[string]*protocolMetrics
}

// outcomeFamilies count one kind of outcome.
type outcomeFamilies struct {
	service, provider, source *metric.Counter
}

// protocolMetrics are the rollups of one protocol, which are never pruned (flows MT-1).
type protocolMetrics struct {
	connections, ready *metric.GaugeValue
	connectionsTotal   *metric.CounterValue
	outcomes           [3]*metric.CounterValue
	latency            *metric.HistogramValue
}

func newMetrics(s *metric.Set) *metrics {
	m := &metrics{
		connections: s.Gauge("connection_count", "Open connections by service", "service"),
		ready:       s.Gauge("ready_count", "Messages in the ready queue", "service"),
		connectionsTotal: s.Counter("total_connection_count",
			"Connections ever made by service", "service"),
		readyFull: s.Counter("ready_full", "Times a message did not fit in the ready queue", "service"),
		aborted: s.Counter("dispatcher_watchdog_aborted_total",
			"Sessions ended because they made no progress", "service"),
		connsProvider: s.Gauge("connection_count_by_provider", "Open outgoing connections by provider", "provider"),
		connsPool: s.Gauge("connection_count_by_provider_and_pool",
			"Open outgoing connections by provider and pool", "provider", "pool"),
		queuedProvider: s.Gauge("queued_count_by_provider",
			"Messages in scheduled and ready queues by provider", "provider"),
		queuedPool: s.Gauge("queued_count_by_provider_and_pool",
			"Messages in scheduled and ready queues by provider and pool", "provider", "pool"),
		latency: s.Histogram("deliver_message_latency_rollup",
			"Duration of one delivery call by protocol", metric.LatencyBuckets, "service"),
		insertLatency: s.Histogram("ready_queue_insert_latency",
			"Time to insert a message into a ready queue", metric.LatencyBuckets).With(),
		runs:      s.Counter("total_readyq_runs", "Times a ready queue was looked after").With(),
		users:     make(map[string]int),
		protocols: make(map[string]*protocolMetrics),
	}
	for d, word := range [3]struct{ name, text string }{
		mta.Delivered: {"delivered", "Messages delivered"},
		mta.Transient: {"transfail", "Delivery attempts that failed and will be repeated"},
		mta.Failed:    {"fail", "Delivery attempts that failed for good"},
	} {
		name := "total_messages_" + word.name
		m.outcomes[d] = outcomeFamilies{
			service:  s.Counter(name, word.text+" by service", "service"),
			provider: s.Counter(name+"_by_provider", word.text+" by provider", "provider"),
			source: s.Counter(name+"_by_provider_and_source", word.text+" by provider, source and pool",
				"provider", "source", "pool"),
		}
	}
	return m
}

// protocol returns the rollups of a protocol, which appear at 0 with its first use (flows MT-1).
func (m *metrics) protocol(name string) *protocolMetrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.protocols[name]
	if p == nil {
		p = &protocolMetrics{
			connections:      m.connections.With(name),
			ready:            m.ready.With(name),
			connectionsTotal: m.connectionsTotal.With(name),
			latency:          m.latency.With(name),
		}
		for d := range m.outcomes {
			p.outcomes[d] = m.outcomes[d].service.With(name)
		}
		m.protocols[name] = p
	}
	return p
}

// serviceMetrics are the instruments of one ready queue.
type serviceMetrics struct {
	all                *metrics
	service, protocol  string
	rollup             *protocolMetrics
	connections, ready *metric.GaugeValue
	connectionsTotal   *metric.CounterValue
	full, aborted      *metric.CounterValue
	outcomes           [3]*metric.CounterValue
}

func (m *metrics) serviceOf(protocol, queue string) *serviceMetrics {
	service := protocol + ":" + queue
	s := &serviceMetrics{
		all: m, service: service, protocol: protocol, rollup: m.protocol(protocol),
		connections:      m.connections.With(service),
		ready:            m.ready.With(service),
		connectionsTotal: m.connectionsTotal.With(service),
		full:             m.readyFull.With(service),
		aborted:          m.aborted.With(service),
	}
	for d := range m.outcomes {
		s.outcomes[d] = m.outcomes[d].service.With(service)
	}
	return s
}

// drop forgets the series of the ready queue (flows MT-8).
func (s *serviceMetrics) drop() {
	for _, g := range []*metric.Gauge{s.all.connections, s.all.ready} {
		g.Delete(s.service)
	}
	for _, c := range []*metric.Counter{s.all.connectionsTotal, s.all.readyFull, s.all.aborted} {
		c.Delete(s.service)
	}
	for d := range s.all.outcomes {
		s.all.outcomes[d].service.Delete(s.service)
	}
}

// providerMetrics are the instruments of messages of one pool in one ready queue.
type providerMetrics struct {
	provider, pool                                     string
	connections, connsPool, queuedProvider, queuedPool *metric.GaugeValue
	outcomes                                           [3][2]*metric.CounterValue
}

// providerOf returns the instruments of a provider, source and pool.
func (m *metrics) providerOf(provider, source, pool string) *providerMetrics {
	p := &providerMetrics{
		provider: provider, pool: pool,
		connections:    m.connsProvider.With(provider),
		connsPool:      m.connsPool.With(provider, pool),
		queuedProvider: m.queuedProvider.With(provider),
		queuedPool:     m.queuedPool.With(provider, pool),
	}
	for d := range m.outcomes {
		p.outcomes[d] = [2]*metric.CounterValue{
			m.outcomes[d].provider.With(provider), m.outcomes[d].source.With(provider, source, pool),
		}
	}
	return p
}

// use and unuse count the ready queues that feed the series of a provider, source and pool; the last one drops those of
// its outcomes (flows MT-8). The gauges are shared with the scheduled queues, which keep them.
func (m *metrics) use(provider, source, pool string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users[provider]++
	m.users[provider+"\x00"+source+"\x00"+pool]++
}

func (m *metrics) unuse(provider, source, pool string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if key := provider + "\x00" + source + "\x00" + pool; m.leave(key) {
		for d := range m.outcomes {
			m.outcomes[d].source.Delete(provider, source, pool)
		}
	}
	if m.leave(provider) {
		m.connsProvider.Delete(provider)
		for d := range m.outcomes {
			m.outcomes[d].provider.Delete(provider)
		}
	}
}

func (m *metrics) leave(key string) (last bool) {
	m.users[key]--
	if m.users[key] > 0 {
		return false
	}
	delete(m.users, key)
	return true
}
