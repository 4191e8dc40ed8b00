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
	"cmd/svc": 10, "cmd/svcload": 10, "cmd/internal/load": 9, "cmd/internal/house": 0,
	"scriptmods":   9,
	"scriptmods/*": 8,
	"mta/server":   7,
	"httpapi":      6,
	"egress/smtpc": 5,
	"egress":       4, "mta/smtpd": 4, "httpapi/inject": 4,
	"queue": 3, "script": 3, "mta/smtp": 3, "mta/journal": 3, "egress/dial": 3, "spool/kinds": 3,
	"mta": 2, "spool/bolt": 2, "spool/localdisk": 2, "spool/memory": 2, "spool/spooltest": 2, "egress/route": 2,
	"spool": 1, "mta/mail": 1, "mta/dns": 1, "mta/limit": 1,
	"mta/event": 0, "mta/settings": 0, "mta/metric": 0, "mta/cache": 0, "mta/netmap": 0,
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
