package dns_test

import (
	"context"
	"fmt"

	"example.com/svc/mta/dns"
)

func ExampleLookupMX() {
	r, err := dns.NewZones([]dns.Zone{{Text: `
example.com. 300 IN MX 20 backup.example.net.
example.com. 300 IN MX 10 mx.example.com.
`}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := dns.LookupMX(context.Background(), r, "Example.COM")
	fmt.Println(res.Domain, res.Hosts, err)
	_, err = dns.LookupMX(context.Background(), r, "example.org")
	fmt.Println(err, dns.IsNotFound(err))
	// Output:
	// example.com [{10 mx.example.com} {20 backup.example.net}] <nil>
	// dns: MX example.org: no such domain true
}
