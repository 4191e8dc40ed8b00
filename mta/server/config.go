package server

import (
	"context"
	"log/slog"

	"example.com/svc/httpapi"
	"example.com/svc/mta"
	"example.com/svc/mta/dns"
	"example.com/svc/mta/event"
	"example.com/svc/mta/journal"
	"example.com/svc/mta/limit"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/spool"
)

// Names of the two spools (flows SP-1).
const (
	MetaSpool = "meta"
	DataSpool = "data"
)

// Config says what one mail transfer agent consists of. The zero value is an agent without listeners that keeps
// messages in memory.
type Config struct {
	// Bus holds the handlers of the policy; nil means no handlers.
	Bus event.Bus
	// SMTP and HTTP are the listeners.
	SMTP []smtpd.Config
	HTTP []httpapi.Config
	// Meta and Data are the spools. When both are nil, Spools are opened, or spools in memory when there are none.
	Meta, Data spool.Spool
	// Spools are the definitions of the spools "meta" and "data"; OpenSpool opens them. It is spool/kinds.Open, or the
	// Open of a single kind for programs that do not want to link the others.
	Spools    []spool.Config
	OpenSpool func(context.Context, spool.Config, *slog.Logger) (spool.Spool, error)
	// Logs are the log files.
	Logs []journal.Config
	// Resolver answers DNS questions; nil means the system's servers.
	Resolver dns.Resolver
	// Keeper keeps rates and leases; nil means within this server.
	Keeper limit.Keeper
	// Classify puts a response into a bounce class; nil means none.
	Classify func(mta.Response) string
	// Hostname is the name the server goes by when it connects; "" means the host name of the machine.
	Hostname string
	// Product is the name in trace headers; "" means "svc".
	Product string
	// NodeID is the UUID of this node in log records; "" means a random one.
	NodeID string
	// Epoch is the configuration epoch; nil means one that only this server bumps.
	Epoch *settings.Epoch
	// Metrics takes the instruments; nil means a set of this server.
	Metrics *metric.Set
	// Log takes diagnostics; nil means slog.Default.
	Log *slog.Logger
}
