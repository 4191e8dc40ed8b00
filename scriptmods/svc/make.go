package svc

import (
	"example.com/svc/egress"
	"example.com/svc/mta/smtpd"
	"example.com/svc/queue"
	"example.com/svc/script"
)

// makeFuncs are the constructors of settings. The work is done by the conversion of the argument.
func makeFuncs() []script.Func {
	return []script.Func{
		script.Fn("make_queue_config", "Makes the settings of a scheduled queue, for get_queue_config.",
			func(params *queue.Config) *queue.Config { return params }, "params"),
		script.Fn("make_egress_path", "Makes the settings of an egress path, for get_egress_path_config.",
			func(params *egress.PathConfig) *egress.PathConfig { return params }, "params"),
		script.Fn("make_egress_pool", "Makes a pool of sources, for get_egress_pool.",
			func(params *egress.Pool) *egress.Pool { return params }, "params"),
		script.Fn("make_egress_source", "Makes a source, for get_egress_source.",
			func(params *egress.Source) *egress.Source { return params }, "params"),
		script.Fn("make_listener_domain", "Makes what is accepted for or from a domain, for get_listener_domain.",
			func(params *smtpd.ListenerDomain) *smtpd.ListenerDomain { return params }, "params"),
	}
}
