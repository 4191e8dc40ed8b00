package script

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"example.com/svc/mta/event"
)

var onDoubtTest = event.Define[struct{}, event.None]("doubt_test_event", event.Single)

// CE-6: any name may be registered; one that is like an event of the service is warned about.
func TestMistypedEvent(t *testing.T) {
	for name, warned := range map[string]bool{onDoubtTest.Name(): false, "doubt_test_evnt": true, "make.my_own_thing": false} {
		var out bytes.Buffer
		e, err := New(Config{Bus: new(event.Local), Log: slog.New(slog.NewTextHandler(&out, nil)), Name: "p.lua",
			Source: []byte("local svc = require 'svc'\nsvc.on('" + name + "', function() end)")})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Load(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Contains(out.String(), "did_you_mean="+onDoubtTest.Name()); got != warned {
			t.Errorf("%s: log %q", name, out.String())
		}
		e.Close()
	}
}
