package egress

import (
	"context"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/queue"
)

// BenchmarkTakeAndDispatch is one message through selection, ready queue, dispatcher and outcome over a carrier that
// costs nothing; the ticket and the message are made beforehand.
func BenchmarkTakeAndDispatch(b *testing.B) {
	r := newRig(b, func(c *PathConfig) { c.MaxReady = 1 << 20; c.MaxDeliveries = 1 << 30 })
	r.m.o.Openers[SMTPClient] = openerFunc(func(_ context.Context, p *Path, _ *PathConfig) (Carrier, error) {
		return freeConn{&fakeConn{r: r, p: p}}, nil
	})
	r.start()
	slot := new(queue.Slot)
	done := make(chan struct{}, 1024)
	m := r.store.New(mta.Envelope{Recipients: []mta.Address{{Local: "a", Domain: "one.test"}}}, []byte("x\r\n"))
	name := mta.QueueName{Domain: "one.test"}
	finish := func(context.Context, *mta.Record, []mta.Result) error { done <- struct{}{}; return nil }
	b.ReportAllocs()
	inFlight := 0
	for b.Loop() {
		tk := queue.NewTicket(m, name, benchConfig, finish, nil) // allocates on its own account
		tk.Selector = slot
		if err := r.m.Take(context.Background(), tk); err != nil {
			b.Fatal(err)
		}
		if inFlight++; inFlight == 512 {
			for range 256 {
				<-done
			}
			inFlight -= 256
		}
	}
	for ; inFlight > 0; inFlight-- {
		<-done
	}
}

var benchConfig = queue.NewTicket(nil, mta.QueueName{}, nil, nil, nil).Config

type freeConn struct{ *fakeConn }

func (freeConn) Close() error { return nil }
func (freeConn) Deliver(_ context.Context, _ *mta.Message, rs []mta.Address, out *Outcome) error {
	out.Add(StageDot, 0, rs, mta.Response{Code: 250})
	return nil
}
