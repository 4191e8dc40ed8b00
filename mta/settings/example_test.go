package settings_test

import (
	"fmt"

	"example.com/svc/mta/settings"
)

// QueueConfig is what a queue obeys.
type QueueConfig struct {
	// Pool is the pool the queue sends through.
	Pool string `set:"egress_pool" default:"unspecified"`
	// RetryInterval is the wait before the first retry.
	RetryInterval settings.Duration `set:"retry_interval" default:"20m"`
	// MaxAge is how long a message may stay before it expires.
	MaxAge settings.Duration `set:"max_age" default:"7d"`
}

func ExampleDecode() {
	given := map[string]any{"egress_pool": "bulk", "max_age": 86400.0}
	var c QueueConfig
	if err := settings.Decode("make_queue_config", given, &c); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s", settings.Encode(c).TOML())

	fmt.Println(settings.Decode("make_queue_config", map[string]any{"retry_interval": "soon", "max_agee": 5.0}, &c))
	// Output:
	// egress_pool = "bulk"
	// retry_interval = "20m"
	// max_age = "1day"
	// make_queue_config: unknown setting "max_agee", did you mean "max_age"?
	// setting "retry_interval": invalid duration "soon"
}

func ExampleNew() {
	c := settings.New(func(c *QueueConfig) { c.Pool = "" })
	fmt.Printf("%q %v\n", c.Pool, c.RetryInterval)
	// Output: "" 20m
}
