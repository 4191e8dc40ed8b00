// Package httpapi serves the HTTP API of the mail transfer agent: injection, liveness and metrics.
//
// A [Server] is one listener (settings start_http_listener). A request goes through these steps: the Host header must
// be one of ours, so that a web page cannot reach a loopback listener through a name of its own; the peer is looked up
// in trusted_hosts and an Authorization header, if present, is checked and must succeed (flows HT-2); the route's rule
// says who may (HT-4); then the handler runs. Routes are one table ([routes]): method, path, who may, function.
//
// Bodies may be gzip or deflate encoded; request_body_limit counts after decompression. Listeners keep answering while
// the service shuts down; handlers that take mail refuse by themselves (HT-6).
package httpapi
