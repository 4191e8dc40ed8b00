package smtpd_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/smtp"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
	"example.com/svc/spool/memory"
)

// printer takes every message and prints its envelope.
type printer struct{}

func (printer) Insert(_ context.Context, ms ...*mta.Message) error {
	for _, m := range ms {
		fmt.Println("from", m.Envelope().Sender, "to", m.Envelope().Recipients[0])
	}
	return nil
}

// A listener with one rule. What it prints is the message that it took in.
func Example() {
	bus := new(event.Local)
	_ = smtpd.OnRcptTo.On(bus, func(_ context.Context, a smtpd.RcptTo) (event.None, error) {
		if a.Recipient.Local == "closed" {
			return event.None{}, mta.Reject(550, "5.1.1 mailbox closed")
		}
		return event.None{}, nil
	})
	log := slog.New(slog.DiscardHandler)
	srv, err := smtpd.New(
		settings.New(func(c *smtpd.Config) { c.Listen, c.Hostname = "127.0.0.1:0", "mx.example.com" }),
		smtpd.Options{Bus: bus, Inbound: printer{}, Store: mta.NewStore(memory.New(), memory.New(), nil, log), Log: log})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := srv.Listen(ctx); err != nil {
		panic(err)
	}
	done := make(chan error)
	go func() { done <- srv.Run(ctx) }()

	c, err := smtp.Dial(srv.Addr().String())
	if err != nil {
		panic(err)
	}
	_ = c.Mail("ann@send.example")
	fmt.Println(c.Rcpt("closed@dest.example"))
	_ = c.Rcpt("bob@dest.example")
	w, _ := c.Data()
	fmt.Fprint(w, "Subject: hello\r\n\r\nhi\r\n")
	_ = w.Close()
	_ = c.Quit()
	cancel()
	fmt.Println(<-done)
	// Output:
	// 550 "5.1.1 mailbox closed"
	// from ann@send.example to bob@dest.example
	// <nil>
}
