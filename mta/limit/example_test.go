package limit_test

import (
	"context"
	"fmt"
	"time"

	"example.com/svc/mta/limit"
)

func ExampleLocal() {
	ctx := context.Background()
	keeper := limit.NewLocal()
	rate, err := limit.ParseRate("6/m,max_burst=2")
	if err != nil {
		fmt.Println(err)
	}
	for range 3 {
		res, _ := keeper.Take(ctx, "example.com", rate, 1)
		fmt.Println(res.Throttled, res.RetryAfter)
	}

	connections := limit.Limit{N: 1}
	lease, ok, _ := keeper.Lease(ctx, "mx.example.com", connections, time.Minute)
	_, again, _ := keeper.Lease(ctx, "mx.example.com", connections, time.Minute)
	fmt.Println(ok, again)
	lease.Release()
	// Output:
	// false 0s
	// false 0s
	// true 10s
	// true false
}
