package kinds

import (
	"strings"
	"testing"

	"example.com/svc/mta/settings"
	"example.com/svc/spool"
)

func TestOpen(t *testing.T) {
	for _, kind := range spool.Kinds() {
		c := settings.New(func(c *spool.Config) { c.Name, c.Kind, c.Path = "data", kind, t.TempDir() })
		s, err := Open(t.Context(), c, nil)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		id := spool.NewIDs().Next()
		if err := s.Put(t.Context(), id, []byte("x")); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for kind, want := range map[string]string{
		"sqlite": spool.KindBolt, "RocksDB": "not served yet", "": spool.KindLocalDisk,
	} {
		s, err := Open(t.Context(), spool.Config{Name: "data", Kind: kind, Path: t.TempDir()}, nil)
		if s != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("kind %q: %v, %v", kind, s, err)
		}
	}
}
