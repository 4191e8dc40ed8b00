package smtpd

import (
	"context"
	"errors"

	"example.com/svc/mta"
	"example.com/svc/spool"
)

// insert hands the batches over and answers (flows SM-39 to SM-45). It is the only place that answers 250 to content
// (Q1).
func (s *session) insert(ctx context.Context, msgs []*mta.Message) {
	ids := make([]spool.ID, len(msgs)) // after Insert the messages belong to someone else (M1)
	for i, m := range msgs {
		ids[i] = m.ID()
	}
	wanted, refused, err := s.sort(ctx, msgs)
	if err != nil {
		s.srv.o.Store.Discard(ctx, msgs...)
		s.refuseContent(ctx, err, "resolve")
		return
	}
	for _, m := range refused {
		s.recordRefused(ctx, m)
	}
	if len(wanted) == 0 {
		s.bad(550, "5.7.1 relaying not permitted")
		return
	}
	failed, reply := s.handOver(ctx, wanted, ids)
	switch {
	case reply != nil:
		s.bad(reply.Code, reply.Text)
	case len(failed) > 0:
		s.ok(250, idText("PARTIAL ids=", ids, failed))
	default:
		s.ok(250, idText("OK ids=", ids, nil))
	}
}

// sort parts the batches that are enqueued from those that are not.
func (s *session) sort(ctx context.Context, msgs []*mta.Message) (wanted, refused []*mta.Message, err error) {
	wanted = make([]*mta.Message, 0, len(msgs))
	for _, m := range msgs {
		take, err := s.mayTake(ctx, m)
		if err == nil {
			err = s.setReception(ctx, m)
		}
		switch {
		case err != nil:
			return nil, nil, err
		case take:
			wanted = append(wanted, m)
		default:
			refused = append(refused, m)
		}
	}
	return wanted, refused, nil
}

// mayTake decides whether a batch is enqueued: it may be relayed, or policy drops it.
func (s *session) mayTake(ctx context.Context, m *mta.Message) (bool, error) {
	env := m.Envelope()
	if len(env.Recipients) > 0 {
		relay, err := s.mayRelay(env.Sender, env.Recipients[0])
		if err != nil || relay {
			return relay, hard(err)
		}
	}
	q, err := m.Queue(ctx)
	if err != nil {
		return false, err
	}
	return q.Domain == mta.NullQueue, nil // flows SM-43
}

// hard makes an error that is answered 421 even when it is a rejection (events.tsv, get_listener_domain).
func hard(err error) error {
	if err == nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, spool.ErrUnhealthy) {
		return err
	}
	return errors.New(err.Error())
}

// setReception keeps what the Reception record shows.
func (s *session) setReception(ctx context.Context, m *mta.Message) error {
	meta, err := m.Meta(ctx)
	if err != nil {
		return err
	}
	m.SetReception(&mta.Record{
		Type: mta.Reception, Peer: s.peer, TLS: s.info.TLS, SessionID: s.info.ID,
		ReceptionProtocol: meta.String(mta.MetaReceptionProtocol),
	})
	return nil
}

// recordRefused records a message that passed policy and is not enqueued (flows SM-42).
func (s *session) recordRefused(ctx context.Context, m *mta.Message) {
	defer s.srv.o.Store.Discard(ctx, m)
	r := m.TakeReception()
	if r == nil || s.srv.o.Recorder == nil {
		return
	}
	env := m.Envelope()
	r.ID, r.Created, r.Size = m.ID(), m.Created(), m.Size()
	r.Sender = env.Sender.String()
	for _, a := range env.Recipients {
		r.Recipients = append(r.Recipients, a.String())
	}
	if q, err := m.Queue(ctx); err == nil {
		r.Queue = q.String()
	}
	r.Response = mta.Response{Code: 250}
	if err := s.srv.o.Recorder.Record(ctx, m, r); err != nil {
		s.log.Error("recording a reception failed", "session", s.info.ID, "id", m.ID().String(), "err", err)
	}
}

// handOver calls Insert. It returns the IDs that failed when others were accepted, or the reply when none was.
func (s *session) handOver(ctx context.Context, msgs []*mta.Message, ids []spool.ID) (map[spool.ID]bool, *mta.Rejection) {
	err := s.srv.o.Inbound.Insert(ctx, msgs...)
	if err == nil {
		return nil, nil
	}
	s.log.Error("taking in a message failed", "session", s.info.ID, "id", ids[0].String(), "err", err)
	var ie *mta.InsertError
	switch {
	case !errors.As(err, &ie):
		s.srv.o.Store.Discard(ctx, msgs...)
		return nil, s.insertReply(err, "insert")
	case ie.Err != nil && len(ie.Failed) > 0: // a queue could not be found
		s.srv.o.Store.Discard(ctx, msgs...)
		return nil, s.insertReply(err, "resolve")
	case ie.Err != nil, len(ie.Failed) == 0: // an error that names nobody vouches for nobody (Q1)
		s.srv.o.Store.Discard(ctx, msgs...)
		return nil, s.insertReply(err, "spool")
	}
	failed := make(map[spool.ID]bool)
	for i := range ie.Failed {
		if i >= 0 && i < len(msgs) {
			failed[msgs[i].ID()] = true // a message that failed is still ours
			s.srv.o.Store.Discard(ctx, msgs[i])
		}
	}
	if len(failed) == len(msgs) {
		return nil, s.insertReply(err, "insert")
	}
	return failed, nil
}

// insertReply says how an Insert that failed at a stage is answered.
func (s *session) insertReply(err error, stage string) *mta.Rejection {
	var rej *mta.Rejection
	var refusal *mta.Refusal
	host := s.info.Hostname
	switch {
	case errors.As(err, &rej) && rej.Code >= 400 && rej.Code <= 599:
		return rej
	case errors.As(err, &refusal):
		return &mta.Rejection{Code: 421, Text: "4.3.2 " + host + " " + refusal.Reason}
	case errors.Is(err, spool.ErrUnhealthy):
		return &mta.Rejection{Code: 421, Text: "4.3.2 " + host + " the spool is not accepting writes. Try later"}
	case errors.Is(err, spool.ErrFull):
		return &mta.Rejection{Code: 452, Text: "4.3.1 insufficient system storage"}
	case errors.Is(err, context.DeadlineExceeded):
		return &mta.Rejection{Code: 451, Text: "4.4.5 data_processing_timeout exceeded (" + stage + ")"}
	case stage == "spool":
		return &mta.Rejection{Code: 451, Text: "4.3.0 local error in processing"}
	}
	return &mta.Rejection{Code: 421, Text: "4.3.0 " + host + " technical difficulties"}
}

// idText lists the IDs that did not fail.
func idText(head string, ids []spool.ID, failed map[spool.ID]bool) string {
	var room [128]byte
	b := append(room[:0], head...)
	for _, id := range ids {
		if failed[id] {
			continue
		}
		if len(b) > len(head) {
			b = append(b, ' ')
		}
		b, _ = id.AppendText(b) // never fails
	}
	return string(b)
}
