package script_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"example.com/svc/mta/event"
	"example.com/svc/script"
)

// DB knows countries of networks.
type DB map[netip.Prefix]string

// Country returns the ISO code of the country of ip, nil when it is not known.
func (db DB) Country(_ context.Context, ip string) (*string, error) {
	addr, err := netip.ParseAddr(ip)
	if err != nil {
		return nil, err
	}
	for network, code := range db {
		if network.Contains(addr) {
			return &code, nil
		}
	}
	return nil, nil
}

// GeoModule gives policies the country of an address: require 'svc.geo'.
func GeoModule(db DB) script.Module {
	return script.Module{Name: "svc.geo", Doc: "Where addresses are.", Funcs: []script.Func{
		script.Fn("country", "Returns the ISO code of the country of ip, or nil.", db.Country, "ip"),
	}}
}

// A module in Go is a value: it is passed in Config.Modules, and its functions are plain Go functions. Here the policy
// decides by country who may speak.
func ExampleModule() {
	welcome := event.Dynamic[string, string]("welcome", event.Single)
	bus := new(event.Local)
	eng, err := script.New(script.Config{
		Bus:     bus,
		Modules: []script.Module{GeoModule(DB{netip.MustParsePrefix("192.0.2.0/24"): "CH"})},
		Source: []byte(`
local svc, geo = require 'svc', require 'svc.geo'
svc.on('welcome', function(ip)
  return 'from ' .. (geo.country(ip) or 'nowhere')
end)`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer eng.Close()
	ctx := context.Background()
	if err := eng.Load(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for _, ip := range []string{"192.0.2.7", "2001:db8::1", "here"} {
		answer, _, err := welcome.Call(ctx, bus, ip)
		fmt.Println(strings.TrimSpace(fmt.Sprint(answer, " ", err)))
	}
	for _, d := range GeoModule(nil).Describe() {
		fmt.Println(d.Signature)
	}
	// Output:
	// from CH <nil>
	// from nowhere <nil>
	// welcome handler at policy.lua:3: policy.lua:4: ParseAddr("here"): unable to parse IP
	// svc.geo.country(ip: string) -> string
}
