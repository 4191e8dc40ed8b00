package metric_test

import (
	"fmt"
	"os"

	"example.com/svc/mta/metric"
)

func Example() {
	set := metric.NewSet()
	received := set.Counter("total_messages_received", "Messages received, by service", "service")
	latency := set.Histogram("smtpsrv_process_data_duration", "Time to take in a message", []float64{0.1, 1})

	smtp := received.With("esmtp_listener") // keep the handle on a hot path
	smtp.Inc()
	smtp.Inc()
	latency.With().Observe(0.25)

	if err := set.WritePrometheus(os.Stdout, ""); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # HELP smtpsrv_process_data_duration Time to take in a message
	// # TYPE smtpsrv_process_data_duration histogram
	// smtpsrv_process_data_duration_bucket{le="0.1"} 0
	// smtpsrv_process_data_duration_bucket{le="1"} 1
	// smtpsrv_process_data_duration_bucket{le="+Inf"} 1
	// smtpsrv_process_data_duration_sum 0.25
	// smtpsrv_process_data_duration_count 1
	// # HELP total_messages_received Messages received, by service
	// # TYPE total_messages_received counter
	// total_messages_received{service="esmtp_listener"} 2
}
