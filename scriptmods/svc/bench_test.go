package svc_test

import (
	"testing"

	"example.com/svc/mta"
	"example.com/svc/queue"
)

// BenchmarkQueueConfig is a handler that makes the settings of a queue, as the queue asks for them.
func BenchmarkQueueConfig(b *testing.B) {
	f := load(b, `svc.on('get_queue_config', function(domain, tenant, campaign)
  return svc.make_queue_config { egress_pool = tenant and 'pool-' .. tenant or 'main', max_age = '3d', retry_interval = '20m' }
end)`)
	q := mta.QueueName{Domain: "a.example", Tenant: "t"}
	b.ReportAllocs()
	for b.Loop() {
		if c, _, err := queue.GetConfig.Call(b.Context(), f.bus, q); err != nil || c.EgressPool != "pool-t" {
			b.Fatal(c, err)
		}
	}
}

// BenchmarkPlace is a line of the log, which names the line of the policy.
func BenchmarkPlace(b *testing.B) {
	f := load(b, handler("svc.log_info('a', 1)"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.eng.Call(b.Context(), "test"); err != nil {
			b.Fatal(err)
		}
		f.log.b.Reset()
	}
}
