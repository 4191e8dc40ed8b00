package spool

import (
	"strings"
	"testing"

	"example.com/svc/mta/settings"
)

func TestConfigDefaults(t *testing.T) {
	c := settings.New(func(c *Config) { c.Name, c.Path = "data", "/x" })
	if c.Kind != KindBolt || !c.Flush || !c.MinFreeSpace.IsPercent || c.MinFreeInodes.Percent != 10 {
		t.Errorf("defaults: %+v", c)
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		c    Config
		want string
	}{
		{Config{Kind: KindBolt, Path: "x"}, "name"},
		{Config{Name: "a", Kind: KindLocalDisk}, "path"},
		{Config{Name: "a", Kind: "RocksDB", Path: "x"}, "not served yet"},
		{Config{Name: "a", Kind: "sqlite", Path: "x"}, "bbolt"},
		{Config{Name: "a", Kind: KindMemory}, ""},
	} {
		err := tc.c.Validate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%+v: %v, want %q", tc.c, err, tc.want)
		}
	}
	if (Config{}).Refused()["rocks_params"] == "" {
		t.Error("rocks_params is not refused")
	}
}
