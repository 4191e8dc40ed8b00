-- The policy for measuring with svcload: mail comes in on 127.0.0.1:2525 and everything goes to the sink of svcload on
-- 127.0.0.1:2526. Handlers run for each recipient and message, as in a real policy; spools are durable.
--
-- Run it:   go run ./cmd/svc --policy examples/load/init.lua
--           go run ./cmd/svcload through --compare
-- You see:  a JSON object with messages_per_second, p50_ms and p99_ms, and ratio_to_direct: the share of what the
--           generator reaches when it sends straight to the sink.

local svc = require 'svc'

svc.on('init', function()
  svc.define_spool { name = 'data', path = 'svc-data/load/data', min_free_space = '1%', min_free_inodes = '1%' }
  svc.define_spool { name = 'meta', path = 'svc-data/load/meta', min_free_space = '1%', min_free_inodes = '1%' }
  svc.configure_local_logs {
    log_dir = 'svc-data/load/logs',
    meta = { 'tenant' },
    compression_level = 1,
    min_free_space = '1%',
    min_free_inodes = '1%',
  }
  svc.start_esmtp_listener { listen = '127.0.0.1:2525', max_messages_per_connection = 1000000 }
  svc.start_http_listener { listen = '127.0.0.1:8000' }
end)

svc.on('smtp_server_message_received', function(msg, conn_meta)
  msg:set_meta('tenant', 'load')
end)

svc.on('get_queue_config', function(domain, tenant, campaign, routing_domain)
  return svc.make_queue_config {
    egress_pool = 'pool',
    retry_interval = '5s',
    max_age = '1 hour',
    protocol = { smtp = { mx_list = { '[127.0.0.1]:2526' } } },
  }
end)

svc.on('get_egress_pool', function(name)
  return svc.make_egress_pool { name = name, entries = { { name = 'source' } } }
end)

svc.on('get_egress_source', function(name)
  return svc.make_egress_source { name = name }
end)

svc.on('get_egress_path_config', function(routing_domain, source, site)
  return svc.make_egress_path {
    prohibited_hosts = {}, -- the sink is on this machine
    max_ready = 200000, -- all domains share the one site of the mx_list
    connection_limit = 128,
  }
end)
