package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"example.com/svc/mta/server"
	"example.com/svc/scriptmods"
)

// doc prints the declarations of the scripting surface.
func doc(_ context.Context, args []string, stdout, _ io.Writer) error {
	mods := scriptmods.All(server.NewBuilder(server.Config{}), scriptmods.Options{Version: version, Log: slog.New(slog.DiscardHandler)})
	found := false
	for _, m := range mods {
		for _, d := range m.Describe() {
			switch {
			case len(args) == 0:
				_, _ = fmt.Fprintln(stdout, d.Signature)
			case d.Name == args[0] || strings.TrimLeft(d.Name[strings.LastIndexAny(d.Name, ".:")+1:], ":.") == args[0]:
				_, _ = fmt.Fprintf(stdout, "%s\n    %s\n", d.Signature, d.Text)
				found = true
			}
		}
	}
	if !found && len(args) > 0 {
		return fmt.Errorf("nothing is called %q; svc doc lists all names", args[0])
	}
	return nil
}
