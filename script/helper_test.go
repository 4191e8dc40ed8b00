package script

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
)

// Events of these tests.
var (
	onPair    = event.Define[pairArgs, event.None]("test_pair", event.Chain)
	askConfig = event.Define[mta.QueueName, *testConfig]("test_config", event.Chain)
	askBool   = event.Define[string, bool]("test_bool", event.Single)
	askText   = event.Define[string, string]("test_text", event.Single)
	askChain  = event.Define[string, bool]("test_chain_bool", event.Chain)
	askLists  = event.Define[event.None, [][]mta.Address]("test_lists", event.Single)
	askTwo    = event.Define[event.None, twoResults]("test_two", event.Single)
	onNothing = event.Define[event.None, event.None]("test_none", event.Chain)
	onAddress = event.Define[addressArgs, event.None]("test_address", event.Single)
	_         = event.Define[undeclared, event.None]("test_undeclared", event.Single)
)

type pairArgs struct {
	Message *mta.Message `arg:"message"`
	Session *mta.Session `arg:"conn_meta"`
}

type addressArgs struct {
	Sender  mta.Address `arg:"sender"`
	Comment string      `arg:"comment,opt"`
	Hidden  int         `arg:"-"`
}

type undeclared struct{ C chan int }

type twoResults struct {
	Status   int    `arg:"status,opt"`
	Response string `arg:"response,opt"`
}

type testConfig struct {
	EgressPool string       `set:"egress_pool" default:"unspecified"`
	MaxAge     testDuration `set:"max_age" default:"7d"`
	Limit      *int         `set:"limit"`
	Names      []string     `set:"names"`
}

// fixture is an engine with a bus and what print wrote.
type fixture struct {
	*Engine
	bus     *event.Local
	out     bytes.Buffer
	log     bytes.Buffer
	metrics *metric.Set
}

func testModules() []Module {
	return []Module{
		{
			Name: "svc", Doc: "Main module.",
			Funcs: append(Rejections(),
				Fn("make_config", "Makes a config.", func(c *testConfig) *testConfig { return c }, "params"),
			),
			Types: []TypeDecl{
				Type[mta.Message]("message", "A message.",
					Fn("set_meta", "Sets metadata.", func(ctx context.Context, m *mta.Message, key string, v any) error {
						meta, err := m.Meta(ctx)
						if err != nil {
							return err
						}
						meta.Set(key, v)
						return nil
					}, "key", "value"),
					Fn("get_meta", "Gets metadata.", func(ctx context.Context, m *mta.Message, key string) (any, error) {
						meta, err := m.Meta(ctx)
						if err != nil {
							return nil, err
						}
						v, _ := meta.Get(key)
						return v, nil
					}, "key"),
				),
				Type[mta.Session]("connectionmeta", "A session.",
					Fn("get_meta", "Gets metadata.", func(s *mta.Session, key string) any {
						v, _ := s.Meta.Get(key)
						return v
					}, "key"),
				),
				Type[mta.Address]("address", "An address.",
					Get("domain", "The domain.", func(a mta.Address) string { return a.Domain }),
				),
			},
			Values: []Value{{"version", "The version.", "1.0"}},
		},
	}
}

func newFixture(t testing.TB, policy string, edit ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{bus: new(event.Local), metrics: metric.NewSet()}
	cfg := Config{Source: []byte(policy), Modules: testModules(), Bus: f.bus, Metrics: f.metrics, Output: &f.out,
		Log: slog.New(slog.NewTextHandler(&f.log, nil))}
	for _, e := range edit {
		e(&cfg)
	}
	var err error
	if f.Engine, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// load makes an engine and loads the policy.
func load(t testing.TB, policy string, edit ...func(*Config)) *fixture {
	t.Helper()
	f := newFixture(t, policy, edit...)
	if err := f.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// eval runs a function body and returns its first result.
func eval(t testing.TB, body string, edit ...func(*Config)) (any, error) {
	t.Helper()
	f := newFixture(t, "local svc = require 'svc'\nsvc.on('main', function(...)\n"+body+"\nend)", edit...)
	if err := f.Load(t.Context()); err != nil {
		return nil, err
	}
	out, err := f.Call(t.Context(), "main")
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return out[0], nil
}

func wantText(t testing.TB, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("error %q does not contain %q", err, p)
		}
	}
}
