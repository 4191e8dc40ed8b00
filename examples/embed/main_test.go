package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/smtp"
	"net/textproto"
	"testing"

	"example.com/svc/mta/server"
	"example.com/svc/mta/settings"
	"example.com/svc/mta/smtpd"
)

// The policy of the example, in a server on a free port, asked by the SMTP client of the standard library.
func TestPolicy(t *testing.T) {
	srv, err := server.New(server.Config{
		Bus:  policy(),
		SMTP: []smtpd.Config{settings.New(func(c *smtpd.Config) { c.Listen = "127.0.0.1:0" })},
		Log:  slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	<-srv.Ready()

	conn, err := net.Dial("tcp", srv.SMTPAddrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := smtp.NewClient(conn, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Mail("a@x.example"); err != nil {
		t.Fatal(err)
	}
	var reply *textproto.Error
	if err := c.Rcpt("closed@y.example"); !errors.As(err, &reply) || reply.Code != 550 {
		t.Errorf("closed@ got %v, want a 550", err)
	}
	if err := c.Rcpt("open@y.example"); err != nil {
		t.Errorf("open@: %v", err)
	}
}
