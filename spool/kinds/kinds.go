// Package kinds opens a spool of the kind that its configuration names.
//
// It links every kind. A program that uses one of them imports that package
// instead and calls its Open.
package kinds

import (
	"context"
	"fmt"
	"log/slog"

	"example.com/svc/spool"
	"example.com/svc/spool/bolt"
	"example.com/svc/spool/localdisk"
	"example.com/svc/spool/memory"
)

// Open checks c and opens the spool. A nil log means slog.Default. Errors name
// the spool; see the packages of the kinds for what else they are.
func Open(ctx context.Context, c spool.Config, log *slog.Logger) (spool.Spool, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("spool %q: %w", c.Name, err)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("spool %q: %w", c.Name, err)
	}
	if log == nil {
		log = slog.Default()
	}
	log = log.With("spool", c.Name)
	s, err := open(c, log)
	if err != nil {
		return nil, fmt.Errorf("spool %q: %w", c.Name, err)
	}
	return s, nil
}

func open(c spool.Config, log *slog.Logger) (spool.Spool, error) {
	switch c.Kind {
	case spool.KindBolt:
		s, err := bolt.Open(c.Path, bolt.Options{NoSync: !c.Flush, Log: log})
		if err != nil {
			return nil, err // not s: a nil pointer in an interface is not nil
		}
		return s, nil
	case spool.KindLocalDisk:
		s, err := localdisk.Open(c.Path, localdisk.Options{NoSync: !c.Flush, Log: log})
		if err != nil {
			return nil, err
		}
		return s, nil
	case spool.KindMemory:
		return memory.New(), nil
	}
	return nil, fmt.Errorf("unknown kind %q (known: %q)", c.Kind, spool.Kinds())
}
