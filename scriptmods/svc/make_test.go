package svc_test

import (
	"testing"

	"example.com/svc/egress"
	"example.com/svc/mta"
	"example.com/svc/mta/smtpd"
	"example.com/svc/queue"
)

// Settings reach whoever asks for them as the types of Go.
func TestMakers(t *testing.T) {
	f := load(t, `
svc.on('get_queue_config', function(domain, tenant, campaign, routing_domain)
  if domain == 'table.example' then return {max_age = '2h'} end
  return svc.make_queue_config { egress_pool = 'p', retry_interval = '5m', max_message_rate = '100/m' }
end)
svc.on('get_egress_pool', function(name)
  return svc.make_egress_pool { name = name, entries = { { name = 's1', weight = 2 }, { name = 's2' } } }
end)
svc.on('get_egress_source', function(name) return svc.make_egress_source { name = name, ehlo_domain = 'out.example' } end)
svc.on('get_egress_path_config', function(domain, source, site)
  local p = svc.make_egress_path { connection_limit = 3, enable_tls = 'Required' }
  eq(p.max_ready, 1024)
  return p
end)
svc.on('get_listener_domain', function(domain) return svc.make_listener_domain { relay_to = domain == 'mine.example' } end)
`)
	ctx := t.Context()
	q, _, err := queue.GetConfig.Call(ctx, f.bus, mta.QueueName{Domain: "d.example"})
	if err != nil || q.EgressPool != "p" || q.RetryInterval.D().Minutes() != 5 || q.MaxMessageRate.String() != "100/m" {
		t.Errorf("queue config %+v, %v", q, err)
	}
	q, _, err = queue.GetConfig.Call(ctx, f.bus, mta.QueueName{Domain: "table.example"})
	if err != nil || q.MaxAge.D().Hours() != 2 || q.EgressPool != "unspecified" {
		t.Errorf("queue config of a table %+v, %v", q, err)
	}
	pool, _, err := egress.GetPool.Call(ctx, f.bus, "p")
	if err != nil || pool.Name != "p" || len(pool.Entries) != 2 || pool.Entries[0].Weight != 2 || pool.Entries[1].Weight != 1 {
		t.Errorf("pool %+v, %v", pool, err)
	}
	src, _, err := egress.GetSource.Call(ctx, f.bus, "s1")
	if err != nil || src.Name != "s1" || src.EHLODomain != "out.example" {
		t.Errorf("source %+v, %v", src, err)
	}
	path, _, err := egress.GetPathConfig.Call(ctx, f.bus, egress.PathArgs{RoutingDomain: "d", Source: "s1", Site: "x"})
	if err != nil || path.ConnectionLimit.N != 3 || path.EnableTLS != "Required" || path.MaxReady != 1024 {
		t.Errorf("path %+v, %v", path, err)
	}
	d, _, err := smtpd.GetListenerDomain.Call(ctx, f.bus, smtpd.DomainQuestion{Domain: "mine.example", Session: new(mta.Session)})
	if err != nil || !d.RelayTo {
		t.Errorf("listener domain %+v, %v", d, err)
	}
}

func TestMakerErrors(t *testing.T) {
	for _, tc := range []struct {
		body string
		want []string
	}{
		{`svc.make_queue_config { egres_pool = 'p' }`, []string{"make_queue_config", "egres_pool", "egress_pool"}},
		{`svc.make_queue_config { max_age = 'long' }`, []string{"max_age"}},
		{`svc.make_queue_config { timerwheel_tick_interval = 1 }`, []string{"not served yet"}},
		{`svc.make_queue_config('p')`, []string{"#1 (params)", "svc.make_queue_config", "table expected, got string"}},
		{`svc.make_queue_config()`, []string{"table expected, got no value"}},
		{`svc.make_egress_path { conection_limit = 3 }`, []string{"make_egress_path", "connection_limit"}},
		{`svc.make_egress_path { enable_tls = 'Maybe' }`, []string{"enable_tls", "Opportunistic"}},
		{`svc.make_egress_pool { entries = {} }`, []string{"make_egress_pool", "name"}},
		{`svc.make_egress_source { name = 's', source_address = 'here' }`, []string{"source_address"}},
		{`svc.make_listener_domain { relay_too = true }`, []string{"relay_to"}},
		{`svc.make_listener_domain { relay_from = { '192.168.1.1/24' } }`, []string{"relay_from", "192.168.1.0/24"}},
	} {
		t.Run(tc.body, func(t *testing.T) {
			wantError(t, run(t, tc.body), append(tc.want, "policy.lua:2")...)
		})
	}
}
