package smtpd

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/smtp"
)

// scratch holds the pooled memory that content is read into.
var scratch = sync.Pool{New: func() any {
	b := make([]byte, 0, 64<<10)
	return &b
}}

// maxPooled is the largest scratch that is kept.
const maxPooled = 1 << 20

// headroom is the room for trace headers before the content.
const headroom = 640

// noHeaders is the headroom of a new message. Its capacity ends with it, so that appending copies.
var noHeaders [headroom]byte

// data answers DATA: it reads the content and answers it (flows SM-29 to SM-45). The transaction ends whatever the
// outcome (RFC 5321 section 4.1.1.4, choices 8).
func (s *session) data() {
	if !s.tx.open || len(s.tx.rcpts) == 0 {
		s.bad(503, "5.5.0 MAIL and RCPT first")
		return
	}
	s.ok(354, "send the message, end with a dot on a line of its own")
	if s.closing {
		return
	}
	s.content = true
	s.takeContent()
	s.content = false
	s.endTransaction()
}

// takeContent reads, processes and answers content.
func (s *session) takeContent() {
	buf, known, fault := s.readContent()
	if s.closing {
		return
	}
	if fault != nil {
		s.bad(fault.Code, fault.Text)
		return
	}
	s.srv.inst.receivedAll.Inc()
	if s.received == nil {
		s.received = s.srv.inst.received.With(service + ":" + s.listener)
	}
	s.received.Inc()
	begin := time.Now()
	s.process(buf, known)
	s.srv.inst.process.ObserveSince(begin)
}

// readContent reads the content to its true end (SD1) and returns it with headroom before it, or why it is refused.
// When the connection failed, closing is set.
func (s *session) readContent() ([]byte, mta.Traits, *mta.Rejection) {
	if s.w.Flush() != nil {
		s.closing = true
		return nil, 0, nil
	}
	cfg := &s.srv.cfg
	held := scratch.Get().(*[]byte)
	defer func() {
		if cap(*held) <= maxPooled {
			scratch.Put(held)
		}
	}()
	s.wire.begin(readContent, true)
	begin := time.Now()
	body, info, err := s.r.ReadData((*held)[:0], smtp.DataOptions{
		MaxSize: int64(cfg.MaxMessageSize), MaxLine: cfg.LineLengthHardLimit, Chunk: int(cfg.DataBufferSize)})
	*held = body[:0]
	if err != nil {
		s.readFailed(err)
		s.closing = true
		return nil, 0, nil
	}
	s.srv.inst.read.ObserveSince(begin)
	if fault := s.judge(body, &info); fault != nil {
		return nil, 0, fault
	}
	if (info.BareCR || info.BareLF) && cfg.InvalidLineEndings == FixEndings {
		return smtp.AppendCRLF(make([]byte, headroom, headroom+len(body)), body), 0, nil
	}
	// Appending makes memory that is not cleared first where the body goes.
	return append(noHeaders[:], body...), traits(&info), nil
}

// traits tells the message what reading its content has shown.
func traits(info *smtp.DataInfo) mta.Traits {
	t := mta.TraitsKnown
	if info.Has8bit {
		t |= mta.Has8Bit
	}
	if info.Plain() {
		t |= mta.PlainLines
	}
	return t
}

// judge says why content is refused; nil when it is not.
func (s *session) judge(body []byte, info *smtp.DataInfo) *mta.Rejection {
	switch {
	case info.TooBig:
		return &mta.Rejection{Code: 552, Text: "5.3.4 message too big"}
	case info.LineTooLong:
		return &mta.Rejection{Code: 500, Text: "5.2.3 line too long"} // flows SM-30
	case (info.BareCR || info.BareLF) && s.srv.cfg.InvalidLineEndings == DenyEndings:
		return &mta.Rejection{Code: 552, Text: "5.6.0 message holds a lone CR or LF"} // flows SM-34
	case countReceived(body, s.srv.o.MaxReceived) > s.srv.o.MaxReceived:
		return &mta.Rejection{Code: 554, Text: "5.4.6 mail loop: too many Received headers"} // RFC 5321 section 6.3
	}
	return nil
}

var received = []byte("received:")

// countReceived counts Received headers; it stops when there are more than limit.
func countReceived(body []byte, limit int) (n int) {
	for len(body) > 0 && n <= limit {
		i := bytes.IndexByte(body, '\n') + 1
		if i == 0 {
			i = len(body)
		}
		line := body[:i]
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return n // the header ends
		}
		if len(line) >= len(received) && line[0]|0x20 == 'r' && bytes.EqualFold(line[:len(received)], received) {
			n++
		}
		body = body[i:]
	}
	return n
}

// process makes messages of the content and answers.
func (s *session) process(buf []byte, known mta.Traits) {
	ctx, cancel := context.WithTimeout(s.ctx, s.srv.cfg.DataProcessingTimeout.D()) // flows SM-32
	defer cancel()
	m := s.srv.o.Store.NewBuffer(mta.Envelope{Sender: s.tx.sender, Recipients: s.tx.rcpts}, buf, headroom)
	m.SetTraits(known)
	msgs, err := s.receive(ctx, m)
	if err != nil {
		s.srv.o.Store.Discard(ctx, msgs...)
		s.srv.o.Store.Discard(ctx, m)
		s.refuseContent(ctx, err, "rx")
		return
	}
	s.insert(ctx, msgs)
}

// receive runs the events of reception and returns the batches, m being one of them, or what there was when an error
// came.
func (s *session) receive(ctx context.Context, m *mta.Message) ([]*mta.Message, error) {
	meta, err := m.Meta(ctx)
	if err != nil {
		return nil, err
	}
	*meta = s.info.Meta.Clone()
	bus := s.srv.o.Bus
	if OnData.Handled(bus) {
		if _, _, err := OnData.Call(ctx, bus, Received{Message: m, Session: &s.info}); err != nil {
			return nil, err
		}
	}
	msgs, err := s.split(ctx, m)
	if err != nil {
		return msgs, err
	}
	for _, b := range msgs {
		if err := s.finish(ctx, b); err != nil {
			return msgs, err
		}
	}
	return msgs, ctx.Err()
}

// finish puts the trace headers on a batch and asks policy about it (flows SM-37, SM-40).
func (s *session) finish(ctx context.Context, b *mta.Message) error {
	trace := &s.srv.cfg.TraceHeaders
	if trace.ReceivedHeader {
		var room [512]byte
		if err := b.Prepend(ctx, s.appendReceived(room[:0], b)); err != nil {
			return err
		}
	}
	if OnMessageReceived.Handled(s.srv.o.Bus) {
		_, _, err := OnMessageReceived.Call(ctx, s.srv.o.Bus, Received{Message: b, Session: &s.info})
		if err != nil {
			return err
		}
	}
	if trace.SupplementalHeader {
		var room [512]byte
		header, err := appendSupplemental(ctx, room[:0], trace, b)
		if err != nil {
			return err
		}
		return b.Prepend(ctx, header)
	}
	return nil
}

// refuseContent answers an error of stage.
func (s *session) refuseContent(ctx context.Context, err error, stage string) {
	var rej *mta.Rejection
	if !errors.As(err, &rej) && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		s.bad(451, "4.4.5 data_processing_timeout exceeded ("+stage+")")
		return
	}
	s.refuse(err)
}

// split makes one message per batch (flows SM-36). m carries the first batch. Without batches m is released.
func (s *session) split(ctx context.Context, m *mta.Message) ([]*mta.Message, error) {
	batches, err := s.batches(ctx, m)
	if err != nil {
		return nil, err
	}
	if len(batches) == 0 {
		s.srv.o.Store.Discard(ctx, m)
		return nil, nil
	}
	msgs := append(make([]*mta.Message, 0, len(batches)), m)
	for _, rcpts := range batches[1:] {
		b, err := s.srv.o.Store.Split(ctx, m, rcpts)
		if err != nil {
			return msgs, err
		}
		msgs = append(msgs, b)
	}
	m.SetRecipients(batches[0])
	return msgs, nil
}

// batches says which recipients go together. Empty batches are left out.
func (s *session) batches(ctx context.Context, m *mta.Message) ([][]mta.Address, error) {
	if OnSplitTransaction.Handled(s.srv.o.Bus) {
		list, handled, err := OnSplitTransaction.Call(ctx, s.srv.o.Bus, Received{Message: m, Session: &s.info})
		if err != nil {
			return nil, err
		}
		if handled && list != nil {
			kept := make([][]mta.Address, 0, len(list))
			for _, b := range list {
				if len(b) > 0 {
					kept = append(kept, b)
				}
			}
			return kept, nil
		}
	}
	rcpts := m.Envelope().Recipients
	if s.srv.cfg.BatchHandling == BatchByDomain {
		return byDomain(rcpts), nil
	}
	batches := make([][]mta.Address, len(rcpts))
	for i := range rcpts {
		batches[i] = rcpts[i : i+1 : i+1]
	}
	return batches, nil
}

// byDomain groups recipients by domain, in order of first mention.
func byDomain(rcpts []mta.Address) (batches [][]mta.Address) {
	index := make(map[string]int)
	for _, r := range rcpts {
		d := strings.ToLower(r.Domain)
		i, ok := index[d]
		if !ok {
			i = len(batches)
			index[d] = i
			batches = append(batches, nil)
		}
		batches[i] = append(batches[i], r)
	}
	return batches
}
