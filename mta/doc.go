// Package mta is the vocabulary of the mail transfer agent: the nouns that every other package talks about.
//
// A [Message] is bytes and an [Envelope] under a [spool.ID]; its [Store] says where those bytes are kept. A message
// names its scheduled queue ([QueueName]) from its [Meta] and its first recipient. A receiving [Session] and a
// delivering attempt leave facts behind as [Record] values, which a [Recorder] writes down. A handler that refuses
// something returns a [Rejection], which becomes the reply to the peer. [Inbound] is whoever takes responsibility for
// accepted messages.
//
// Nothing in this package runs by itself: no goroutines, no network, no configuration.
//
// # Floors
//
// Packages of this module stand on floors and import lower floors only, never their own. A test under
// cmd/internal/house compares this table with what go list says:
//
//	10  cmd/svc  cmd/svcload
//	9   scriptmods
//	8   scriptmods/*
//	7   mta/server
//	6   httpapi
//	5   egress/smtpc
//	4   egress  mta/smtpd  httpapi/inject
//	3   queue  script  mta/smtp  mta/journal  egress/dial  spool/kinds
//	2   mta  egress/route  spool/{bolt,localdisk,memory,spooltest}
//	1   spool  mta/mail  mta/dns  mta/limit
//	0   mta/event  mta/settings  mta/metric  mta/cache  mta/netmap  mta/journal/jsonl  queue/wheel  httpapi/api
//
// # Invariants
//
//   - M1 A message has one holder: session, scheduled queue, ticket, or nobody. Whoever receives it may change it;
//     whoever passed it on may not touch it. There is no lock inside a message.
//   - M2 Meta and data of a message are saved before anything refers to its ID: data first, then meta, so that a meta
//     record never stands without its data.
package mta
