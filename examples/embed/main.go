// Command embed is a mail transfer agent inside a Go program, without any Lua.
//
// Type go run ./examples/embed and send it a message on 127.0.0.1:2525; it relays for this machine only and keeps
// messages in memory, as it says when it starts.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/queue"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	srv, err := server.New(server.Config{
		Bus:  policy(),
		SMTP: []smtpd.Config{settings.New(func(c *smtpd.Config) { c.Listen = "127.0.0.1:2525" })},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := srv.Run(ctx); err != nil { // returns when ctx has ended and all mail is settled
		log.Fatal(err)
	}
}

func policy() event.Bus {
	bus := new(event.Local)
	must(smtpd.OnRcptTo.On(bus, func(_ context.Context, a smtpd.RcptTo) (event.None, error) {
		if a.Recipient.Local == "closed" {
			return event.None{}, mta.Reject(550, "5.1.1 mailbox closed")
		}
		return event.None{}, nil
	}))
	must(queue.GetConfig.On(bus, func(_ context.Context, q mta.QueueName) (*queue.Config, error) {
		c := settings.New(func(c *queue.Config) { c.MaxAge = settings.Duration(24 * time.Hour) })
		return &c, nil
	}))
	return bus
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
