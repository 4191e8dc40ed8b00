package scriptmods

import (
	"example.com/svc/mta/server"
	"example.com/svc/script"
	"example.com/svc/scriptmods/message"
	"example.com/svc/scriptmods/svc"
)

// Options are those of the main module.
type Options = svc.Options

// All returns every module, over b, for [script.Config]. Call it before b.Build. Modules that are known and not served
// yet are in it as [script.Module.Absent].
func All(b *server.Builder, o Options) []script.Module {
	main := svc.Module(b, o)
	main.Types = append(main.Types, message.Types()...)
	return append([]script.Module{main}, absentModules()...)
}
