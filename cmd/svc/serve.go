package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"example.com/svc/mta/event"
	"example.com/svc/mta/metric"
	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
	"example.com/svc/script"
	"example.com/svc/scriptmods"
	"example.com/svc/spool/kinds"
)

// defaultPath is the policy that is served when no other is named and it exists (choices 22).
const defaultPath = "/opt/svc/etc/policy/init.lua"

// defaultPolicy is served when there is no file.
//
//go:embed default.lua
var defaultPolicy []byte

// policyFlags reads the flags of serve and check.
func policyFlags(name string, args []string, stderr io.Writer) (path string, level slog.Level, err error) {
	fs := flag.NewFlagSet("svc "+name, flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&path, "policy", "", "policy file; default "+defaultPath+" if present, else the embedded policy")
	fs.TextVar(&level, "log-level", slog.LevelInfo, "least level of diagnostics: debug, info, warn or error")
	if err := fs.Parse(args); err != nil {
		return "", 0, err
	}
	if fs.NArg() > 0 {
		return "", 0, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	return path, level, nil
}

// instance is a policy joined to a server.
type instance struct {
	bus     *event.Local
	engine  *script.Engine
	builder *server.Builder
	source  string // the file or name of the policy
}

// policySource is a policy file, or the text of one.
type policySource struct {
	path, name string
	text       []byte
}

// choosePolicy returns the file at path; without one the default file if it exists, else the embedded policy.
func choosePolicy(path string) policySource {
	switch {
	case path != "":
		return policySource{path: path}
	case fileExists(defaultPath):
		return policySource{path: defaultPath}
	}
	return policySource{name: "default.lua", text: defaultPolicy}
}

// loadPolicy runs a policy up to the end of init.
func loadPolicy(ctx context.Context, src policySource, log *slog.Logger) (*instance, error) {
	bus, set, epoch := new(event.Local), metric.NewSet(), new(settings.Epoch)
	b := server.NewBuilder(server.Config{Bus: bus, OpenSpool: kinds.Open, Metrics: set, Epoch: epoch, Log: log})
	cpus, err := parallelism()
	if err != nil {
		return nil, err
	}
	eng, err := script.New(script.Config{Path: src.path, Name: src.name, Source: src.text, Bus: bus, Metrics: set, Log: log,
		Getenv:  os.LookupEnv,
		Modules: scriptmods.All(b, scriptmods.Options{Version: version, Log: log, Parallelism: cpus})})
	if err != nil {
		return nil, err
	}
	if err := eng.Load(ctx); err != nil {
		eng.Close()
		return nil, err
	}
	if err := server.Prepare(ctx, bus); err != nil {
		eng.Close()
		return nil, err
	}
	return &instance{bus: bus, engine: eng, builder: b, source: cmp.Or(src.path, src.name)}, nil
}

// build makes the server of a policy. A daemon keeps what it accepts, so a policy without spools is refused
// (events.tsv, init). Errors name the place of the init handler.
func (in *instance) build() (*server.Server, error) {
	where := in.source
	if hs := in.bus.Handlers(server.OnInit.Name()); len(hs) > 0 {
		where = "init handler at " + hs[0].Source
	}
	spools := 0
	if err := in.builder.Edit(func(c *server.Config) { spools = len(c.Spools) }); err != nil {
		return nil, err
	}
	if spools == 0 {
		return nil, fmt.Errorf("%s: no spools are defined: call define_spool for %q and %q in init, with kind = 'memory' for a service that may forget its mail",
			where, server.DataSpool, server.MetaSpool)
	}
	srv, err := in.builder.Build()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return srv, nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// checkPolicy runs the policy and builds the server without opening or binding anything.
func checkPolicy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	path, level, err := policyFlags("check", args, stderr)
	if err != nil {
		return err
	}
	in, err := loadPolicy(ctx, choosePolicy(path), newLog(stderr, max(level, slog.LevelWarn), false))
	if err != nil {
		return err
	}
	defer in.engine.Close()
	if _, err := in.build(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "the policy is good")
	return err
}

// serve runs the policy's server until a signal ends it.
func serve(ctx context.Context, args []string, _, stderr io.Writer) error {
	path, level, err := policyFlags("serve", args, stderr)
	if err != nil {
		return err
	}
	raiseFileLimit()
	log := newLog(stderr, level, isTerminal(stderr))
	in, err := loadPolicy(ctx, choosePolicy(path), log)
	if err != nil {
		return err
	}
	defer in.engine.Close()
	srv, err := in.build()
	if err != nil {
		return err
	}
	if err := setThreads(); err != nil {
		return err
	}
	tuneGC()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended, done := make(chan struct{}), make(chan struct{})
	defer func() { close(ended); <-done }()
	go func() {
		defer close(done)
		handleSignals(ctx, ended, stop, in, log)
	}()
	return srv.Run(ctx)
}

// handleSignals obeys signals (choices 23) until the server has ended: SIGTERM and SIGINT stop, a second one at once;
// SIGHUP loads the policy again.
func handleSignals(ctx context.Context, ended <-chan struct{}, stop func(), in *instance, log *slog.Logger) {
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGTERM, os.Interrupt, syscall.SIGHUP)
	defer signal.Stop(ch)
	stopping := false
	for {
		select {
		case <-ended:
			return
		case sig := <-ch:
			switch {
			case sig == syscall.SIGHUP:
				reload(ctx, in, log)
			case stopping:
				log.Warn("stopping at once", "signal", sig.String())
				os.Exit(1)
			default:
				stopping = true
				log.Info("stopping", "signal", sig.String())
				stop()
			}
		}
	}
}

// reload loads the policy again; one that fails leaves the old one in force. What init configured needs a restart.
func reload(ctx context.Context, in *instance, log *slog.Logger) {
	if err := in.engine.Load(ctx); err != nil {
		log.Error("the policy was not loaded again; the old one stays in force", "err", err)
		return
	}
	in.builder.Bump()
	log.Info("the policy was loaded again; listeners, spools and logs are as before and need a restart to change")
}
