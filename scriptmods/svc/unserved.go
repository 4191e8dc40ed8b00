package svc

import (
	"fmt"
	"slices"
)

// unserved are the functions of svc that are known and not served yet. A name leaves the list when it is declared.
var unserved = []string{
	"compute_egress_path_config_constraints", "compute_queue_config_constraints", "configure_accounting_db_path",
	"configure_bounce_classifier", "configure_log_hook", "configure_redis_throttles", "eval_config_monitor_globs",
	"format_egress_path_config_constraints", "format_egress_path_config_toml", "format_queue_config_toml",
	"generate_rfc3464_message", "get_memory_hard_limit", "get_memory_low_thresh", "get_memory_soft_limit", "glob",
	"memoize", "read_dir", "set_config_monitor_globs", "set_diagnostic_log_filter",
	"set_httpinject_recipient_rate_limit", "set_httpinject_threads", "set_logging_threads",
	"set_lruttl_cache_capacity", "set_memory_hard_limit", "set_memory_low_thresh", "set_memory_soft_limit",
	"set_qmaint_threads", "set_ready_qmaint_threads", "set_readyq_threads", "set_smtpsrv_threads",
	"set_spoolin_threads", "spawn_task", "suspend_delivery_when_spool_unhealthy", "uncached_glob",
}

// missing is asked for names that are not declared.
func missing(name string) error {
	if slices.Contains(unserved, name) {
		return fmt.Errorf("svc.%s is not served yet", name)
	}
	return nil
}
