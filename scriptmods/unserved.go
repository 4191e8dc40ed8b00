package scriptmods

import (
	"fmt"

	"example.com/svc/script"
)

// unserved are the modules that are known and not served yet. A name leaves the list when the module is served.
var unserved = []string{
	"policy-extras.mail_auth", "proxy", "redis", "regex", "sqlite", "svc.aaa", "svc.amqp", "svc.api.inject",
	"svc.cidr", "svc.counter_series", "svc.crypto", "svc.digest", "svc.dkim", "svc.dns", "svc.domain_map",
	"svc.encode", "svc.file_type", "svc.fs", "svc.http", "svc.jsonl", "svc.kafka", "svc.mimepart", "svc.mpsc",
	"svc.nats", "svc.regex_set_map", "svc.secrets", "svc.serde", "svc.shaping", "svc.spf", "svc.time", "svc.uuid",
	"svc.xfer", "tsa",
}

// absentModules declares the modules that are not served yet, so that require says so. A policy may bring a Lua file of
// such a name.
func absentModules() []script.Module {
	mods := make([]script.Module, len(unserved))
	for i, name := range unserved {
		mods[i] = script.Module{Name: name, Absent: fmt.Errorf("module %q is not served yet", name)}
	}
	return mods
}
