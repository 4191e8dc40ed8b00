package message

import (
	"example.com/svc/mta"
	"example.com/svc/script"
)

// Types declares the objects of messages and sessions, for the Types of any one module.
func Types() []script.TypeDecl {
	var methods []script.Func
	for _, part := range [][]script.Func{metaMethods(), envelopeMethods(), contentMethods(), headerMethods(), spoolMethods()} {
		methods = append(methods, part...)
	}
	methods = append(methods, script.Fn("__index", "Says that there is no such method.", unknownMethod, "name"))
	return []script.TypeDecl{
		script.Type[mta.Message]("message", "A message and its envelope, while a handler has it.", methods...),
		script.Type[mta.Address]("address", "A mailbox of an envelope.",
			script.Get("user", "Is the local part without quotes and backslashes.",
				func(a mta.Address) string { return a.Local }),
			script.Get("domain", "Is the part after the last at sign.", func(a mta.Address) string { return a.Domain }),
			script.Get("email", "Is the whole address, quoted where it has to be.",
				func(a mta.Address) string { return a.String() }),
		),
		script.Type[mta.Session]("connectionmeta", "What is known about the session that a message comes from.",
			script.Fn("get_meta", "Returns the value of a metadata key of the session, nil when it is not set.", sessionGet,
				"name"),
			script.Fn("set_meta", "Gives a metadata key of the session a value; every later message of it gets a copy.",
				sessionSet, "name", "value"),
			script.Fn("auth_info", "Returns who the peer of the session is.",
				func(s *mta.Session) *mta.Auth { return &s.Auth }),
		),
		script.Type[mta.Auth]("authinfo", "Who a peer is, and how that was shown.", authFields()...),
	}
}

func authFields() []script.Func {
	return []script.Func{
		script.Get("peer_address", "Is the address of the peer, nil when it is not known.", func(a *mta.Auth) any {
			if !a.Peer.IsValid() {
				return nil
			}
			return a.Peer.String()
		}),
		script.Get("identities", "Lists the proven names as tables with identity and context.", identities),
		script.Get("groups", "Lists the groups of the peer.", func(a *mta.Auth) []string {
			return append(make([]string, 0, len(a.Groups)), a.Groups...)
		}),
		script.Fn("__setting", "Gives identities and groups, for answers that say who a peer is.", authTable),
	}
}

func identities(a *mta.Auth) []any {
	list := make([]any, len(a.Identities))
	for i, id := range a.Identities {
		list[i] = map[string]any{"identity": id.Identity, "context": id.Context}
	}
	return list
}

// authTable is the AuthInfo table of events.tsv smtp_server_auth_plain. Where the peer is stays its session's to say.
func authTable(a *mta.Auth) map[string]any {
	groups := make([]any, len(a.Groups))
	for i, g := range a.Groups {
		groups[i] = g
	}
	return map[string]any{"identities": identities(a), "groups": groups}
}
