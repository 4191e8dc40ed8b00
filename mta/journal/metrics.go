package journal

import "example.com/svc/mta/metric"

// instruments are those of one logger, labelled with its log_dir.
type instruments struct {
	submitFull    *metric.CounterValue
	submitLatency *metric.HistogramValue
	writeErrors   *metric.CounterValue
}

func newInstruments(s *metric.Set, logger string) instruments {
	return instruments{
		submitFull: s.Counter("log_submit_full",
			"Times submitting a log record found the logger's queue full", "logger").With(logger),
		submitLatency: s.Histogram("log_submit_latency",
			"Time to submit a record to a logger", metric.LatencyBuckets, "logger").With(logger),
		writeErrors: s.Counter("log_write_errors",
			"Attempts to write log records that failed", "logger").With(logger),
	}
}
