// Package svc gives policies the main module, which is called svc like the service.
//
// [Module] binds a [server.Builder]: during init a policy fills its configuration with listeners, spools and logs;
// afterwards it makes messages and hands them in through the server that was built. The constructors of settings decode
// tables into the structs of the subsystems that ask for them, so that a misspelled key is an error at the line that
// holds it, with the nearest known name.
//
// Each function is declared once, with the Go function that serves it; the signature that documents show is that of the
// Go function. svc.on belongs to package script and is not declared here.
//
// Invariants:
//
//	SV1  What belongs into init is refused elsewhere: while the policy is being loaded, since that happens for each
//	     script state, and once the server was made.
//	SV2  A message is handed in at most once, and only one that make_message made and nobody else holds (Q1, M1).
//	     Afterwards the policy cannot reach it any more.
//
// Limits: names of the surface that are not in the declarations are not served yet: reading one gives nil, calling that
// says so. The bus of the builder must be the
// one the policy registers on.
package svc
