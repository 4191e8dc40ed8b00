package mta

import "example.com/svc/mta/metric"

// metrics are the instruments of a [Store] (metrics.tsv).
type metrics struct {
	count, dataResident, metaResident *metric.GaugeValue
	dataLoad, metaLoad, save          *metric.HistogramValue
	quarantined                       *metric.CounterValue
}

func newMetrics(s *metric.Set) *metrics {
	return &metrics{
		count: s.Gauge("message_count", "Message objects alive in any state").With(),
		dataResident: s.Gauge("message_data_resident_count",
			"Message objects whose body is in memory").With(),
		metaResident: s.Gauge("message_meta_resident_count",
			"Message objects whose metadata is in memory").With(),
		dataLoad: s.Histogram("message_data_load_latency",
			"Time to load a message body from the spool", metric.LatencyBuckets).With(),
		metaLoad: s.Histogram("message_meta_load_latency",
			"Time to load message metadata from the spool", metric.LatencyBuckets).With(),
		save: s.Histogram("message_save_latency",
			"Time to save a message's metadata and/or body to the spool", metric.LatencyBuckets).With(),
		quarantined: s.Counter("message_quarantined_count",
			"Messages set aside because their spool records could not be read").With(),
	}
}
