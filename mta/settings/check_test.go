package settings_test

import (
	"fmt"
	"testing"

	"example.com/svc/mta/settings"
)

func TestCheck(t *testing.T) {
	type config struct {
		checked
		Name  string             `set:"name" required:"true"`
		Mode  mode               `set:"mode" default:"Required"`
		Maybe mode               `set:"maybe"`
		Parts []checked          `set:"parts"`
		Ptr   *checked           `set:"ptr"`
		Map   map[string]checked `set:"map"`
		Key   settings.KeySource `set:"key" required:"true"`
	}
	good := settings.New(func(c *config) { c.Name, c.Key.Path = "a", "/k" })
	if err := settings.Check("make", &good); err != nil {
		t.Error(err)
	}
	tests := []struct {
		edit func(*config)
		want string
	}{
		{func(c *config) { c.Name = "" }, `make: setting "name" is required`},
		{func(c *config) { c.Key = settings.KeySource{} }, `make: setting "key" is required`},
		{func(c *config) { c.Mode = "" }, `make: setting "mode": invalid value "", want one of Opportunistic, Required, Disabled`},
		{func(c *config) { c.Maybe = "required" },
			`make: setting "maybe": invalid value "required", want one of Opportunistic, Required, Disabled, did you mean "Required"?`},
		{func(c *config) { c.Low = 11 }, `make: setting "low": 11 is above high`},
		{func(c *config) { c.Parts = []checked{{}, {Low: 1}} }, `make: setting "parts[2].low": 1 is above high`},
		{func(c *config) { c.Ptr = &checked{Low: 1} }, `make: setting "ptr.low": 1 is above high`},
		{func(c *config) { c.Map = map[string]checked{"a b": {Low: 1}} }, `make: setting "map[\"a b\"].low": 1 is above high`},
	}
	for _, tt := range tests {
		c := good
		tt.edit(&c)
		if got := fmt.Sprint(settings.Check("make", c)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if settings.Check("make", 5) == nil || settings.Check("make", (*config)(nil)) == nil {
		t.Error("no struct was checked")
	}
}
