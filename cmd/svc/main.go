// Command svc is the mail transfer agent as a daemon.
//
//	svc [serve] [--policy FILE]   serve a policy; without one the embedded default policy
//	svc check [--policy FILE]     run the policy and check what it configures, without opening or binding anything
//	svc demo                      run a complete server against a sink in this process and print a summary
//	svc doc [NAME]                list the names that policies can use, or explain one
//	svc version                   print the version
//
// It joins the Lua layer to package mta/server and adds flags and signals, nothing more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/lmittmann/tint"
)

// version is set by the linker in releases.
var version = "0.1.0-dev"

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "svc:", err)
			os.Exit(1)
		}
	}
}

// command is one row of the table of subcommands.
type command struct {
	name, args, help string
	run              func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

func commands() []command {
	return []command{
		{"serve", "[--policy FILE]", "serve a policy; without one the embedded default policy", serve},
		{"check", "[--policy FILE]", "run the policy and check what it configures", checkPolicy},
		{"demo", "[--messages N]", "run a complete server against a sink in this process", demo},
		{"doc", "[NAME]", "list the names that policies can use, or explain one", doc},
		{"version", "", "print the version", func(_ context.Context, _ []string, stdout, _ io.Writer) error {
			_, err := fmt.Fprintln(stdout, version)
			return err
		}},
	}
}

// unserved are subcommands of the command line (choices 20) that are not served yet.
var unserved = []string{"run", "proxy", "tsa"}

// run finds the subcommand; flags alone mean serve.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	name := "serve"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		name, args = args[0], args[1:]
	} else if len(args) > 0 && (args[0] == "-h" || args[0] == "--help" || args[0] == "-help") {
		usage(stdout)
		return nil
	} else if len(args) > 0 && (args[0] == "--version" || args[0] == "-version") {
		name, args = "version", args[1:]
	}
	for _, c := range commands() {
		if c.name == name {
			return c.run(ctx, args, stdout, stderr)
		}
	}
	for _, u := range unserved {
		if u == name {
			return fmt.Errorf("%q is not served yet", name)
		}
	}
	if name == "help" {
		usage(stdout)
		return nil
	}
	return fmt.Errorf("unknown command %q; svc help lists them", name)
}

func usage(w io.Writer) {
	_, _ = fmt.Fprintln(w, "usage: svc [command] [flags]")
	for _, c := range commands() {
		_, _ = fmt.Fprintf(w, "  %-28s %s\n", strings.TrimSpace(c.name+" "+c.args), c.help)
	}
}

// newLog writes diagnostics to w, one line each, with colours on a terminal only.
func newLog(w io.Writer, level slog.Level, color bool) *slog.Logger {
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.RFC3339Nano, NoColor: !color}))
}
