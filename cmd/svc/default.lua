-- The policy that is served when none is named. It runs at once on a fresh machine and is no open relay:
-- SMTP on 127.0.0.1:2525 and HTTP on 127.0.0.1:8000, mail accepted from this machine only,
-- spool and logs below ./svc-data.
local svc = require 'svc'

svc.on('init', function()
  svc.define_spool { name = 'data', path = 'svc-data/spool/data' }
  svc.define_spool { name = 'meta', path = 'svc-data/spool/meta' }
  svc.configure_local_logs { log_dir = 'svc-data/logs', max_segment_duration = '1 hour' }
  svc.start_http_listener { listen = '127.0.0.1:8000' }
  svc.start_esmtp_listener { listen = '127.0.0.1:2525', relay_hosts = { '127.0.0.1', '::1' } }
end)
