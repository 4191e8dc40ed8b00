package spool

import "example.com/svc/mta/settings"

// Names of the kinds of storage.
const (
	KindBolt      = "bbolt"
	KindLocalDisk = "LocalDisk"
	KindMemory    = "memory"
	kindRocks     = "RocksDB"
)

// Config describes one spool (setting rows define_spool). Begin with
// settings.New, which fills the defaults.
type Config struct {
	// Name tells spools apart; the MTA uses "data" and "meta".
	Name string `set:"name" required:"true"`
	// Kind is the storage: "bbolt", "LocalDisk" (one file a value) or "memory",
	// where nothing survives.
	Kind string `set:"kind" default:"bbolt"`
	// Path is the directory of the spool. Kind "memory" does not use it.
	Path string `set:"path"`
	// Flush makes each write wait until it is on stable storage. Without it a
	// power loss loses what was acknowledged.
	Flush bool `set:"flush" default:"true"`
	// MinFreeSpace is what must stay free on the disk, as 'N%' or in bytes.
	MinFreeSpace settings.FreeSpace `set:"min_free_space" default:"10%"`
	// MinFreeInodes is how many inodes must stay free, as 'N%' or a count.
	MinFreeInodes settings.FreeSpace `set:"min_free_inodes" default:"10%"`
}

// Refused names the settings that are known and not served yet.
func (Config) Refused() map[string]string {
	return map[string]string{
		"rocks_params": "kind RocksDB is not served yet, use kind bbolt",
	}
}

// Kinds returns the kinds that Config takes.
func Kinds() []string { return []string{KindBolt, KindLocalDisk, KindMemory} }

// Validate checks the fields against each other. Its error names the setting.
func (c Config) Validate() error {
	switch c.Kind {
	case KindBolt, KindLocalDisk, KindMemory:
	case kindRocks:
		return settings.Fault("kind", "RocksDB is not served yet, use %q", KindBolt)
	default:
		return settings.Fault("kind", "unknown kind %q (known: %q)", c.Kind, Kinds())
	}
	if c.Name == "" {
		return settings.Fault("name", "must not be empty")
	}
	if c.Path == "" && c.Kind != KindMemory {
		return settings.Fault("path", "kind %s needs a directory", c.Kind)
	}
	return nil
}
