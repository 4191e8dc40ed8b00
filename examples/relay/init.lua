-- A small relay: it takes mail from this machine and from users with a password, and passes it on to the hosts that
-- DNS names; for one domain it takes mail from anybody and hands it to the mail store of that domain.
--
-- Run it:   svc check --policy examples/relay/init.lua
--           svc serve --policy examples/relay/init.lua
-- You see:  one line per listener, then "initialization complete"; spool and logs appear below ./svc-data.
-- Try it:   printf 'EHLO me\r\nMAIL FROM:<a@example.net>\r\nRCPT TO:<b@example.org>\r\nQUIT\r\n' | nc 127.0.0.1 2525

local svc = require 'svc'

-- Who may relay to anywhere without a password.
local trusted = { '127.0.0.1', '::1' }

-- Users that may relay from elsewhere: name = 'password'. With an empty table nobody can log in.
local users = {}

-- The one domain that is ours, and where its mail goes.
local our_domain = 'example.com'
local our_store = 'mailstore.example.com'

-- A tenant may have a pool of its own; the others share 'main'.
local pool_of = { newsletter = 'bulk' }

-- Pools are lists of sources. Give a source an address of this machine with source_address = '192.0.2.10'.
local pools = {
  main = { { name = 'out-1', weight = 2 }, { name = 'out-2', weight = 1 } },
  bulk = { { name = 'out-bulk' } },
}
local sources = {
  ['out-1'] = { ehlo_domain = 'out-1.example.com' },
  ['out-2'] = { ehlo_domain = 'out-2.example.com' },
  ['out-bulk'] = { ehlo_domain = 'bulk.example.com' },
}

-- What the service consists of. These functions work in init only.
svc.on('init', function()
  -- Bodies and envelopes. A message is on disk before the sender gets its 250.
  svc.define_spool { name = 'data', path = './svc-data/spool/data' }
  svc.define_spool { name = 'meta', path = './svc-data/spool/meta' }

  -- One JSON line for each reception, delivery, delay and bounce, in compressed segments. The tenant is in each line.
  svc.configure_local_logs {
    log_dir = './svc-data/logs',
    max_segment_duration = '1 hour',
    meta = { 'tenant' },
    headers = { 'Subject' },
  }

  svc.start_esmtp_listener {
    listen = '127.0.0.1:2525',
    hostname = 'relay.example.com',
    relay_hosts = trusted,
    max_message_size = 50 * 1024 * 1024,
  }
  -- Metrics and injection over HTTP, for this machine.
  svc.start_http_listener { listen = '127.0.0.1:8000', hostname = 'relay.example.com' }
end)

-- AUTH PLAIN: true lets the user in. Without this handler nobody could log in.
svc.on('smtp_server_auth_plain', function(authz, authc, password, conn_meta)
  return users[authc] ~= nil and users[authc] == password
end)

-- What is accepted for a domain. No answer means: only from trusted hosts.
svc.on('get_listener_domain', function(domain, listener, conn_meta)
  if domain == our_domain or conn_meta:get_meta('authn_id') then
    return svc.make_listener_domain { relay_to = true }
  end
end)

-- The address of "ip:port" or "[ip]:port" is in the list.
local function is_trusted(received_from)
  local ip = received_from and received_from:match('^%[?(.-)%]?:%d+$')
  for _, t in ipairs(trusted) do
    if t == ip then return true end
  end
  return false
end

-- Each message belongs to a tenant: the user that logged in, else what a trusted host says in the header X-Tenant. The
-- tenant becomes part of the queue name, so that tenants do not wait for each other. The header does not leave.
svc.on('smtp_server_message_received', function(msg, conn_meta)
  local tenant = conn_meta:get_meta('authn_id')
  if not tenant and is_trusted(conn_meta:get_meta('received_from')) then
    tenant = msg:get_first_named_header_value('X-Tenant')
  end
  msg:remove_all_named_headers('X-Tenant')
  if not tenant then return end
  if not tenant:match('^[%w._-]+$') then
    svc.reject(550, '5.7.1 that is no name of a tenant')
  end
  msg:set_meta('tenant', tenant)
  svc.log_debug('message for', msg:recipient_list()[1], 'of', tenant)
end)

-- How long and how often each queue tries. Settings that are not given have their defaults.
svc.on('get_queue_config', function(domain, tenant, campaign, routing_domain)
  local params = {
    egress_pool = pool_of[tenant] or 'main',
    retry_interval = '10m', -- then 20m, 40m, ...
    max_retry_interval = '4h',
    max_age = '3 days',
  }
  if domain == our_domain then
    params.retry_interval = '1m'
    params.protocol = { smtp = { mx_list = { our_store } } }
  end
  return svc.make_queue_config(params)
end)

svc.on('get_egress_pool', function(name)
  if not pools[name] then error('there is no pool ' .. name) end
  return svc.make_egress_pool { name = name, entries = pools[name] }
end)

svc.on('get_egress_source', function(name)
  local s = sources[name]
  if not s then error('there is no source ' .. name) end
  return svc.make_egress_source { name = name, ehlo_domain = s.ehlo_domain, source_address = s.source_address }
end)

-- How a source treats a site: the hosts that receive the mail of a domain.
svc.on('get_egress_path_config', function(routing_domain, egress_source, site_name)
  local params = {
    connection_limit = 16,
    max_deliveries_per_connection = 100,
    enable_tls = 'Opportunistic',
    idle_timeout = '10s',
  }
  if egress_source == 'out-bulk' then
    params.connection_limit = 4
    params.max_message_rate = '600/m,max_burst=20'
  end
  return svc.make_egress_path(params)
end)
