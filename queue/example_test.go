package queue_test

import (
	"context"
	"fmt"
	"log/slog"

	"example.com/svc/mta"
	"example.com/svc/mta/event"
	"example.com/svc/mta/settings"
	"example.com/svc/queue"
	"example.com/svc/spool/memory"
)

// printer is an outlet that delivers to the screen.
type printer struct{ done chan struct{} }

func (p printer) Take(ctx context.Context, t *queue.Ticket) error {
	data, err := t.Message.Data(ctx)
	if err != nil {
		return t.Corrupt(ctx, err)
	}
	fmt.Printf("%s, pool %s: %s\n", t.Queue, t.Config.EgressPool, data)
	defer close(p.done)
	return t.Finish(ctx, &mta.Record{DeliveryProtocol: "Screen"}, []mta.Result{{Response: mta.Response{Code: 250}}})
}

// journal is a recorder that prints.
type journal struct{}

func (journal) Record(_ context.Context, _ *mta.Message, r *mta.Record) error {
	fmt.Println(r.Type, r.Recipients, r.Response)
	return nil
}

// A manager with an outlet of its own, which delivers one message.
func Example() {
	bus := new(event.Local)
	_ = queue.GetConfig.On(bus, func(_ context.Context, q mta.QueueName) (*queue.Config, error) {
		return new(settings.New(func(c *queue.Config) { c.EgressPool = "pool-" + q.Domain })), nil
	})
	store := mta.NewStore(memory.New(), memory.New(), nil, slog.New(slog.DiscardHandler))
	out := printer{make(chan struct{})}
	m, err := queue.New(queue.Options{Store: store, Bus: bus, Outlet: out, Recorder: journal{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()

	to, _ := mta.ParseAddress("user@example.org")
	if err := m.Insert(ctx, store.New(mta.Envelope{Recipients: []mta.Address{to}}, []byte("hello"))); err != nil {
		fmt.Println(err)
	}
	<-out.done
	stop()
	fmt.Println(<-done, m.Len())
	// Output:
	// Reception [user@example.org] 250
	// example.org, pool pool-example.org: hello
	// Delivery [user@example.org] 250
	// <nil> 0
}
