// Package house holds the tests that keep the house in order: which package may import which, inside and outside, and
// how the code may start and configure itself. It has no code of its own beyond the tables.
//
// The floors are those of the table in package mta (mta/doc.go). A package imports lower floors only, never its own; a
// package without a floor fails the test. Examples stand outside and may import anything public.
package house

// module is the path of this module.
const module = "example.com/svc"

// floors maps each package, without the module path, to its floor. A name that ends in "/*" stands for the folders
// right below it.
var floors = map[string]int{
	"cmd/svc": 9, "cmd/svcctl": 9, "cmd/svcload": 9,
	"scriptmods":   8,
	"scriptmods/*": 7,
	"mta/server":   6,
	"httpapi":      5,
	"egress/smtpc": 4,
	"egress":       3, "mta/smtpd": 3, "httpapi/inject": 3,
	"queue": 2, "script": 2, "mta/smtp": 2, "mta/journal": 2, "egress/route": 2, "egress/dial": 2, "spool/kinds": 2,
	"mta": 1, "mta/mail": 1, "mta/dns": 1, "mta/limit": 1,
	"spool/bolt": 1, "spool/localdisk": 1, "spool/memory": 1, "spool/spooltest": 1,
	"spool": 0, "mta/event": 0, "mta/settings": 0, "mta/metric": 0, "mta/cache": 0, "mta/netmap": 0,
	"mta/journal/jsonl": 0, "queue/wheel": 0, "httpapi/api": 0,
}

// outside maps modules of others to the packages that may import them.
var outside = map[string][]string{
	"github.com/Shopify/go-lua":          {"script"},
	"github.com/yuin/gopher-lua":         {"script"},
	"go.etcd.io/bbolt":                   {"spool/bolt"},
	"github.com/miekg/dns":               {"mta/dns", "mta/dns/dnstest"},
	"github.com/VictoriaMetrics/metrics": {"mta/metric"},
	"github.com/emersion/go-smtp":        {"mta/smtpd", "egress/smtpc"},
	"github.com/emersion/go-message":     {"mta/mail"},
	"github.com/klauspost/compress":      {"mta/journal/jsonl", "httpapi"},
	"github.com/pelletier/go-toml":       {"mta/settings"},
	"github.com/gaissmai/bart":           {"mta/netmap"},
	"pgregory.net/rapid":                 {},
	"github.com/redis/rueidis":           {"mta/limit/redislimit", "scriptmods/redis"},
	"modernc.org/sqlite":                 {"mta/journal/account", "scriptmods/sqlite"},
	"github.com/cockroachdb/pebble":      {"spool/rocks"},
}
