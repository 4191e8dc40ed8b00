package inject

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"example.com/svc/httpapi/api"
	"example.com/svc/mta"
	"example.com/svc/mta/event"
	hdr "example.com/svc/mta/mail"
	"example.com/svc/mta/metric"
)

// Options are the parts an [Injector] works with. Store and Inbound are needed.
type Options struct {
	Bus     event.Bus
	Store   *mta.Store
	Inbound mta.Inbound
	Metrics *metric.Set
	// Product is the name in Received headers.
	Product string
}

// Injector builds and hands in messages. It is safe for concurrent use.
type Injector struct {
	o        Options
	received *metric.CounterValue
}

// New makes an injector.
func New(o Options) *Injector {
	return &Injector{o: o, received: o.Metrics.Counter("total_messages_received",
		"Messages received, by service", "service").With("http_listener")}
}

// Origin is where a request came from.
type Origin struct {
	Auth mta.Auth
	// Peer is the client's address, Local the listener's.
	Peer  netip.Addr
	Local netip.AddrPort
	// Hostname is the name of the listener.
	Hostname string
}

// Inject carries out a request. The error is a [*RequestError] for a fault of the request as a whole; failures of
// single recipients are in the response.
func (in *Injector) Inject(ctx context.Context, r *api.InjectV1Request, from Origin) (*api.InjectV1Response, error) {
	sender, err := mta.ParseAddress(r.EnvelopeSender)
	if err != nil {
		return nil, fmt.Errorf("envelope_sender: %w", err)
	}
	c, err := prepare(r, time.Now())
	if err != nil {
		return nil, err
	}
	res := &api.InjectV1Response{FailedRecipients: []string{}, Errors: []string{}}
	fail := func(email string, err error) {
		res.FailCount++
		res.FailedRecipients = append(res.FailedRecipients, email)
		res.Errors = append(res.Errors, email+": "+err.Error())
	}
	ms := make([]*mta.Message, 0, len(r.Recipients))
	emails := make([]string, 0, len(r.Recipients))
	for _, to := range r.Recipients {
		in.received.Inc()
		m, err := in.build(ctx, r, c, sender, to, from)
		if err != nil {
			fail(to.Email, err)
			continue
		}
		ms = append(ms, m)
		emails = append(emails, to.Email)
	}
	in.insert(ctx, ms, emails, res, fail)
	return res, nil
}

// insert hands the messages in with one call and counts the outcome. When some cannot be routed, they fail alone and the
// others are handed in again (flows HI-12).
func (in *Injector) insert(ctx context.Context, ms []*mta.Message, emails []string, res *api.InjectV1Response, fail func(string, error)) {
	for len(ms) > 0 {
		err := in.o.Inbound.Insert(ctx, ms...)
		var ie *mta.InsertError
		if err != nil && (!errors.As(err, &ie) || len(ie.Failed) == 0) {
			in.o.Store.Discard(ctx, ms...)
			for _, email := range emails {
				fail(email, err)
			}
			return
		}
		if err == nil {
			res.SuccessCount += len(ms)
			return
		}
		n := 0
		for i, m := range ms {
			if cause, failed := ie.Failed[i]; failed {
				fail(emails[i], cause)
				in.o.Store.Discard(ctx, m)
				continue
			}
			ms[n], emails[n] = m, emails[i]
			n++
		}
		ms, emails = ms[:n], emails[:n]
		if ie.Err == nil { // the others were accepted
			res.SuccessCount += n
			return
		}
	}
}

// build makes the message of one recipient.
func (in *Injector) build(ctx context.Context, r *api.InjectV1Request, c *content, sender mta.Address, to api.Recipient, from Origin) (*mta.Message, error) {
	rcpt, err := mta.ParseAddress(to.Email)
	if err != nil {
		return nil, err
	}
	if rcpt.IsNull() {
		return nil, errors.New("empty address")
	}
	buf, off, err := c.message(to)
	if err != nil {
		return nil, err
	}
	m := in.o.Store.NewBuffer(mta.Envelope{Sender: sender, Recipients: []mta.Address{rcpt}}, buf, off)
	if err := in.finish(ctx, r, m, to, from); err != nil {
		in.o.Store.Discard(ctx, m)
		return nil, err
	}
	return m, nil
}

// finish adds metadata and trace headers and raises the event (flows HI-8, HI-10, HI-11).
func (in *Injector) finish(ctx context.Context, r *api.InjectV1Request, m *mta.Message, to api.Recipient, from Origin) error {
	meta, err := m.Meta(ctx)
	if err != nil {
		return err
	}
	meta.Set(mta.MetaHTTPAuth, httpAuth(from))
	meta.Set(mta.MetaReceptionProtocol, "HTTP")
	meta.Set(mta.MetaReceivedFrom, from.Peer.String())
	meta.Set(mta.MetaReceivedVia, from.Local.String())
	meta.Set(mta.MetaHostname, from.Hostname)
	if len(to.Metadata) > 0 {
		if err := mta.CheckMetaValue(to.Metadata); err != nil {
			return err
		}
		meta.Set(mta.MetaExtra, to.Metadata)
	}
	trace := api.DefaultHttpTraceHeaders()
	if r.TraceHeaders != nil {
		trace = *r.TraceHeaders
	}
	if trace.ReceivedHeader {
		if err := m.Prepend(ctx, in.receivedHeader(m, from)); err != nil {
			return err
		}
	}
	if _, _, err := OnMessageGenerated.Call(ctx, in.o.Bus, MessageGenerated{Message: m, Auth: &from.Auth}); err != nil {
		return err
	}
	if trace.SupplementalHeader {
		if err := hdr.CheckField(trace.HeaderName, ""); err != nil {
			return err
		}
		h, err := hdr.AppendSupplemental(nil, trace.HeaderName, []string{to.Email}, trace.IncludeMetaNames, meta.Get)
		if err != nil {
			return err
		}
		if err := m.Prepend(ctx, h); err != nil {
			return err
		}
	}
	m.SetReception(&mta.Record{Peer: &mta.Peer{Addr: from.Peer}, ReceptionProtocol: "HTTP"})
	return nil
}

func (in *Injector) receivedHeader(m *mta.Message, from Origin) []byte {
	env := m.Envelope()
	domain := env.Sender.Domain
	if domain == "" {
		domain = "unspecified"
	}
	return []byte("Received: from " + domain + " (" + from.Peer.String() + ")\r\n\tby " + from.Hostname + " (" + in.o.Product +
		")\r\n\twith HTTP id " + m.ID().String() + "\r\n\tfor <" + env.Recipients[0].String() + ">;\r\n\t" + hdr.Date(time.Now()) + "\r\n")
}

// httpAuth is the identity by HTTP basic authentication, else the first identity, else the address.
func httpAuth(from Origin) string {
	for _, id := range from.Auth.Identities {
		if id.Context == mta.ContextHTTPBasic {
			return id.Identity
		}
	}
	if len(from.Auth.Identities) > 0 {
		return from.Auth.Identities[0].Identity
	}
	return from.Peer.String()
}
