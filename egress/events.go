package egress

import "example.com/svc/mta/event"

// PathArgs are the arguments of get_egress_path_config.
type PathArgs struct {
	// RoutingDomain is the routing domain of the queue if it has one, else its domain.
	RoutingDomain string `arg:"routing_domain"`
	// Source is the name of the egress source.
	Source string `arg:"egress_source"`
	// Site is the site name.
	Site string `arg:"site_name"`
}

// RewriteArgs are the arguments of smtp_client_rewrite_delivery_status.
type RewriteArgs struct {
	// Response is the reply on one line, line breaks as escapes.
	Response string `arg:"response"`
	// Domain, Tenant and Campaign are those of the scheduled queue.
	Domain   string `arg:"domain"`
	Tenant   string `arg:"tenant,opt"`
	Campaign string `arg:"campaign,opt"`
	// RoutingDomain is the domain when the queue has none of its own.
	RoutingDomain string `arg:"routing_domain"`
}

// Questions of this package (events.tsv).
var (
	// GetPathConfig asks what a ready queue obeys, when it is made and when its config has grown old. Without an answer
	// the defaults apply. An error fails the making; later it keeps the old config.
	GetPathConfig = event.Define[PathArgs, *PathConfig]("get_egress_path_config", event.Single)
	// GetPool asks for the definition of a pool by name. No answer is an error.
	GetPool = event.Define[string, *Pool]("get_egress_pool", event.Single)
	// GetSource asks for the definition of a source by name. No answer is an error.
	GetSource = event.Define[string, *Source]("get_egress_source", event.Single)
	// RewriteDeliveryStatus may change the code of a reply that is not 250 before it is judged; 0 leaves it. An error
	// is logged and leaves it too.
	RewriteDeliveryStatus = event.Define[RewriteArgs, int]("smtp_client_rewrite_delivery_status", event.Single)
)
