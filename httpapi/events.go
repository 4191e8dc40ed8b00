package httpapi

import "example.com/svc/mta/event"

// BasicAuth is the argument of [OnValidateBasic].
type BasicAuth struct {
	User     string `arg:"user"`
	Password string `arg:"password,opt"`
}

// OnValidateBasic is raised for each Authorization: Basic header, even from trusted hosts (events.tsv,
// http_server_validate_auth_basic). Without a handler the credentials are bad.
var OnValidateBasic = event.Define[BasicAuth, bool]("http_server_validate_auth_basic", event.Single)
