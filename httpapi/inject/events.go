package inject

import (
	"example.com/svc/mta"
	"example.com/svc/mta/event"
)

// MessageGenerated is the argument of [OnMessageGenerated].
type MessageGenerated struct {
	Message *mta.Message `arg:"message"`
	Auth    *mta.Auth    `arg:"auth_info"`
}

// OnMessageGenerated is raised for each message after it is built and before it is saved (events.tsv,
// http_message_generated). An error fails that recipient.
var OnMessageGenerated = event.Define[MessageGenerated, event.None]("http_message_generated", event.Single)
