// Package load generates mail and receives it again, to measure and to check a mail server between the two.
//
// A [Ledger] numbers the messages of one run. A [Generator] sends them over SMTP to a server, writing the number into
// the recipient's local part and into a header field; a [Sink] is an SMTP server that receives them, reads the number,
// optionally temp-fails or rejects a share, and notes each arrival in the ledger. At the end the ledger tells what was
// accepted, what arrived, what was lost and what came twice, and how long it took.
//
// Both ends are meant to cost far less than what is measured: messages are built once and only their numbers change,
// a transaction is three writes, bodies are scanned in large pieces, and nothing is allocated per message.
//
// The engine is its own, independent of the SMTP engines of the mail server, so that a mistake there cannot hide
// behind the same mistake here.
package load
