package mta

import "strings"

// InternalSuffix ends the names of the queues that belong to the service itself.
const InternalSuffix = ".svc.internal"

// NullQueue is the queue that discards (flows SM-43).
const NullQueue = "null"

// QueueName names a scheduled queue (flows QN). The field order is the order of arguments of get_queue_config.
type QueueName struct {
	// Domain is the destination domain in lower case, or the whole name of an internal queue.
	Domain string `arg:"domain"`
	// Tenant is empty when the name has none.
	Tenant string `arg:"tenant,opt"`
	// Campaign is empty when the name has none.
	Campaign string `arg:"campaign,opt"`
	// RoutingDomain overrides the domain for routing; empty when the name has none.
	RoutingDomain string `arg:"routing_domain,opt"`
}

// ParseQueueName splits s as flows QN-2 says: at the first "@", then at the first ":" before it, then at the first "!"
// after it. Every string is a name.
func ParseQueueName(s string) QueueName {
	var q QueueName
	left, right, found := strings.Cut(s, "@")
	if !found {
		left, right = "", s
	}
	if c, t, ok := strings.Cut(left, ":"); ok {
		q.Campaign, q.Tenant = c, t
	} else {
		q.Tenant = left
	}
	q.Domain, q.RoutingDomain, _ = strings.Cut(right, "!")
	return q
}

// String joins the components as flows QN-1 says.
func (q QueueName) String() string {
	n := len(q.Campaign) + len(q.Tenant) + len(q.Domain) + len(q.RoutingDomain) + 3
	b := make([]byte, 0, n)
	if q.Campaign != "" {
		b = append(b, q.Campaign...)
		b = append(b, ':')
	}
	if q.Tenant != "" {
		b = append(b, q.Tenant...)
	}
	if q.Campaign != "" || q.Tenant != "" {
		b = append(b, '@')
	}
	b = append(b, q.Domain...)
	if q.RoutingDomain != "" {
		b = append(b, '!')
		b = append(b, q.RoutingDomain...)
	}
	return string(b)
}

// Routing returns the domain that is routed: the routing domain if there is one, else the domain.
func (q QueueName) Routing() string {
	if q.RoutingDomain != "" {
		return q.RoutingDomain
	}
	return q.Domain
}

// Internal reports whether the queue belongs to the service itself: get_queue_config is not asked for it.
func (q QueueName) Internal() bool {
	return q.Domain == NullQueue || strings.HasSuffix(q.Domain, InternalSuffix)
}
