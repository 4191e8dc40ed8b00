package smtpd

import "example.com/svc/mta/metric"

const service = "esmtp_listener"

// instruments are those of metrics.tsv that a listener feeds.
type instruments struct {
	connections              *metric.GaugeValue
	accepted, denied         *metric.CounterValue
	received, rejections     *metric.Counter
	receivedAll, rejectedAll *metric.CounterValue
	read, process, whole     *metric.HistogramValue
}

func newInstruments(s *metric.Set) *instruments {
	received := s.Counter("total_messages_received", "Messages received, by service", "service")
	rejections := s.Counter("smtp_server_rejections", "Rejection records written by the SMTP server", "service")
	return &instruments{
		connections: s.Gauge("connection_count", "Currently open connections per service", "service").With(service),
		accepted:    s.Counter("total_connection_count", "Connections ever made, by service", "service").With(service),
		denied: s.Counter("total_connections_denied",
			"Incoming connections refused through load shedding or the connection cap", "service").With(service),
		received:    received,
		rejections:  rejections,
		receivedAll: received.With(service),
		rejectedAll: rejections.With("total"),
		read: s.Histogram("smtpsrv_read_data_duration",
			"Time to read the message body after 354", metric.LatencyBuckets).With(),
		process: s.Histogram("smtpsrv_process_data_duration",
			"Time to process a received message body and enqueue it", metric.LatencyBuckets).With(),
		whole: s.Histogram("smtpsrv_transaction_duration",
			"Time from MAIL FROM until the transaction ends", metric.LatencyBuckets).With(),
	}
}
