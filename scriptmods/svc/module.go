package svc

import (
	"log/slog"
	"runtime/debug"

	"example.com/svc/mta/event"
	"example.com/svc/mta/limit"
	"example.com/svc/mta/server"
	"example.com/svc/script"
)

// Options change what the module tells and where it writes. The zero value is ready for use.
type Options struct {
	// Log takes what policies log, with the attribute target=lua; nil means slog.Default.
	Log *slog.Logger
	// Version is what svc.version shows; empty means the version of the main module of the program.
	Version string
	// Parallelism is what available_parallelism returns; 0 means what the runtime uses.
	Parallelism int
}

// module is what the functions of one module value share. It is safe for concurrent use.
type module struct {
	b      *server.Builder
	o      Options
	log    *slog.Logger
	bus    event.Bus
	keeper limit.Keeper
	made   drafts
	places places
}

// Module declares svc over b, before b.Build. The keeper of rates of b's configuration is set when it was not, so that
// policy and server share it.
func Module(b *server.Builder, o Options) script.Module {
	m := &module{b: b, o: o, log: o.Log}
	if m.log == nil {
		m.log = slog.Default()
	}
	m.log = m.log.With("target", "lua")
	if err := b.Edit(m.share); err != nil {
		m.share(new(server.Config)) // the server exists: the rates are those of the policy alone
	}
	out := script.Module{
		Name:    "svc",
		Doc:     "What every policy needs: handlers, settings, listeners, spools, logs, messages and throttles.",
		Types:   m.throttleTypes(),
		Missing: missing,
		Values: []script.Value{{Name: "version", Doc: "Is the version of the service, later ones compare greater.",
			Value: versionText(o.Version)}},
	}
	for _, part := range [][]script.Func{m.initFuncs(), makeFuncs(), script.Rejections(), m.messageFuncs(), m.throttleFuncs(),
		m.invokeFuncs(), m.logFuncs(), serdeFuncs(), m.processFuncs(), poolFuncs()} {
		out.Funcs = append(out.Funcs, part...)
	}
	return out
}

// share takes what the server will use too from its configuration.
func (m *module) share(c *server.Config) {
	if c.Keeper == nil {
		c.Keeper = limit.NewLocal()
	}
	m.bus, m.keeper = c.Bus, c.Keeper
}

func versionText(given string) string {
	if given != "" {
		return given
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
