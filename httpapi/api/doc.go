// Package api holds the request and response types of the HTTP API, named as in the schemas.
//
// The types carry JSON tags only and know nothing of the server, so that server and clients share them without
// importing each other.
package api
