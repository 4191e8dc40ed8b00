package house

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"example.com/svc/mta/dns"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/server"
	"example.com/svc/script"
	"example.com/svc/scriptmods"
)

// surface is the part of testdata/surface.json that is compared: all names of the specified surface.
type surface struct {
	Modules map[string][]string `json:"modules"`
	Objects map[string][]string `json:"objects"`
	Events  []string            `json:"events"`
	Metrics map[string][]string `json:"metrics"`
}

func readSurface(t *testing.T) surface {
	t.Helper()
	text, err := os.ReadFile("testdata/surface.json")
	if err != nil {
		t.Fatal(err)
	}
	var s surface
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Modules["svc"]) < 50 || len(s.Objects["message"]) < 30 || len(s.Events) < 20 || len(s.Metrics["main"]) < 50 {
		t.Fatal("testdata/surface.json does not hold what this test reads")
	}
	return s
}

// extraNames are declared names that the surface file does not have, with the reason.
var extraNames = map[string]string{
	"connectionmeta:get_meta":             "the surface lists the object without its methods",
	"connectionmeta:set_meta":             "the surface lists the object without its methods",
	"connectionmeta:auth_info":            "the surface lists the object without its methods",
	"authinfo.peer_address":               "the surface lists no members of what svc.aaa describes",
	"authinfo.identities":                 "the surface lists no members of what svc.aaa describes",
	"authinfo.groups":                     "the surface lists no members of what svc.aaa describes",
	"throttle:throttle":                   "the surface lists no members of what make_throttle returns",
	"throttle:sleep_if_throttled":         "the surface lists no members of what make_throttle returns",
	"throttle:delay_message_if_throttled": "the surface lists no members of what make_throttle returns",
	"throttle:explain":                    "the surface lists no members of what make_throttle returns",
	"throttleresult.throttled":            "the surface lists no members of what throttle returns",
	"throttleresult.limit":                "the surface lists no members of what throttle returns",
	"throttleresult.remaining":            "the surface lists no members of what throttle returns",
	"throttleresult.reset_after":          "the surface lists no members of what throttle returns",
	"throttleresult.retry_after":          "the surface lists no members of what throttle returns",
}

// extraMetrics are registered metrics that the surface file does not have, with the reason.
var extraMetrics = map[string]string{
	"message_quarantined_count": "records that cannot be read are set aside and counted, which the surface has no name for",
}

// stand is a server with one listener of each kind, built as a policy would have it.
type stand struct {
	mods []script.Module
	set  *metric.Set
}

func newStand(t *testing.T) stand {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	none, err := dns.NewZones(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	bus, set := new(event.Local), metric.NewSet()
	b := server.NewBuilder(server.Config{Bus: bus, Metrics: set, Resolver: none, Hostname: "mx.test", Log: quiet})
	mods := scriptmods.All(b, scriptmods.Options{Log: quiet})
	eng, err := script.New(script.Config{Bus: bus, Metrics: set, Log: quiet, Modules: mods, Source: []byte(`
local svc = require 'svc'
svc.on('init', function()
  svc.start_esmtp_listener { listen = '127.0.0.1:0' }
  svc.start_http_listener { listen = '127.0.0.1:0' }
end)`)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(eng.Close)
	if err := eng.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Prepare(t.Context(), bus); err != nil {
		t.Fatal(err)
	}
	srv, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	runFor(t, srv)
	return stand{mods, set}
}

// runFor runs srv until it is ready, so that the parts that are made late exist, and ends it with the test.
func runFor(t *testing.T, srv *server.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = srv.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err != nil {
			t.Error(err)
		}
	})
	select {
	case <-srv.Ready():
	case <-done:
		t.Fatalf("server did not start: %v", err)
	}
}

// known reports whether the surface has a declared name such as "svc.reject", "message:id" or "address.user".
func (s *surface) known(name string) bool {
	if owner, member, ok := strings.Cut(name, ":"); ok {
		return slices.Contains(s.Objects[owner], member)
	}
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return false
	}
	owner, member := name[:i], name[i+1:]
	return slices.Contains(s.Modules[owner], member) || slices.Contains(s.Objects[owner], member)
}

// TestSurfaceNames holds that policies see no name that the surface does not have, and tells how much of it is served.
func TestSurfaceNames(t *testing.T) {
	s := readSurface(t)
	served := map[string]bool{"svc.on": true} // declared by package script itself
	used := map[string]bool{}
	for _, m := range newStand(t).mods {
		for _, d := range m.Describe() {
			switch {
			case d.Kind == "type" || strings.Contains(d.Name, ":__"): // types are no names, hooks are not called by name
			case s.known(d.Name):
				served[d.Name] = true
			case extraNames[d.Name] != "":
				used[d.Name] = true
			default:
				t.Errorf("%s is declared and not in the surface: %s", d.Name, d.Signature)
			}
		}
	}
	for name := range extraNames {
		if !used[name] {
			t.Errorf("%s is listed as an extra and not declared, or in the surface", name)
		}
	}
	total := 0
	for _, names := range s.Modules {
		total += len(names)
	}
	for _, names := range s.Objects {
		total += len(names)
	}
	t.Logf("%d of %d names of modules and objects are served, and %d more", len(served), total, len(used))
}

// TestSurfaceEvents holds that every declared event is one of the surface and can be handled by a policy.
func TestSurfaceEvents(t *testing.T) {
	s := readSurface(t)
	decls := event.Declarations()
	for _, d := range decls {
		if !slices.Contains(s.Events, d.Name) {
			t.Errorf("event %s is declared and not in the surface", d.Name)
		}
		bus := new(event.Local)
		eng, err := script.New(script.Config{Bus: bus, Log: slog.New(slog.DiscardHandler),
			Modules: scriptmods.All(server.NewBuilder(server.Config{Bus: bus}), scriptmods.Options{}),
			Source:  []byte("require 'svc'.on('" + d.Name + "', function() end)")})
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.Load(t.Context()); err != nil {
			t.Errorf("event %s: %v", d.Name, err)
		}
		eng.Close()
	}
	if len(decls) < 15 {
		t.Errorf("only %d events are declared", len(decls))
	}
	t.Logf("%d of %d events are served", len(decls), len(s.Events))
}

// TestSurfaceMetrics holds that a running server registers only metrics of the surface.
func TestSurfaceMetrics(t *testing.T) {
	s := readSurface(t)
	descs := newStand(t).set.Describe()
	served, used := 0, map[string]bool{}
	for _, d := range descs {
		switch {
		case slices.Contains(s.Metrics["main"], d.Name):
			served++
		case extraMetrics[d.Name] != "":
			used[d.Name] = true
		default:
			t.Errorf("metric %s is registered and not in the surface: %s", d.Name, d.Help)
		}
	}
	for name := range extraMetrics {
		if !used[name] {
			t.Errorf("metric %s is listed as an extra and not registered, or in the surface", name)
		}
	}
	if served < 20 {
		t.Errorf("only %d metrics of the surface are registered", served)
	}
	t.Logf("%d of %d metrics are served, and %d more", served, len(s.Metrics["main"]), len(used))
}
