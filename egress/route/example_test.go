package route_test

import (
	"context"
	"fmt"

	"example.com/svc/egress/route"
	"example.com/svc/mta/dns"
)

func ExamplePlanner() {
	r, err := dns.NewZones([]dns.Zone{{Text: `
example.com. 300 IN MX 10 mx1.example.com.
example.com. 300 IN MX 20 mx2.example.com.
mx1.example.com. 300 IN A 192.0.2.1
mx2.example.com. 300 IN A 192.0.2.2
`}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := route.NewPlanner(route.Config{Resolver: r})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := p.Plan(context.Background(), "example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	targets, err := p.Targets(context.Background(), plan, dns.Ipv4AndIpv6)
	fmt.Println(plan.Site, err)
	for _, t := range targets {
		fmt.Println(t.Addr, t.Name)
	}
	// Output:
	// (mx1|mx2).example.com <nil>
	// 192.0.2.1 mx1.example.com
	// 192.0.2.2 mx2.example.com
}
