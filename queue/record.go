package queue

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"example.com/svc/mta"
)

// Responses of the queue's own making.
var (
	expiredCode = mta.EnhancedCode{Class: 5, Subject: 4, Detail: 7}
	holdCode    = mta.EnhancedCode{Class: 4, Subject: 4, Detail: 4}
	corruptCode = mta.EnhancedCode{Class: 5, Subject: 6, Detail: 0}
	badNameCode = mta.EnhancedCode{Class: 5, Subject: 1, Detail: 3}
)

func corruptResponse(cause error) mta.Response {
	text := "message cannot be read back from the spool"
	if cause != nil {
		text += ": " + cause.Error()
	}
	return mta.Internal(550, corruptCode, text)
}

// newRecord makes a record about msg from a template, which may be nil. Attempts are those before the present one.
func newRecord(ctx context.Context, queue string, msg *mta.Message, tmpl *mta.Record, t mta.RecordType,
	rs []mta.Address, resp mta.Response) *mta.Record {
	r := new(mta.Record)
	if tmpl != nil {
		*r = *tmpl
	}
	r.Type, r.ID, r.Queue, r.Response = t, msg.ID(), queue, resp
	r.Sender = msg.Envelope().Sender.String()
	r.Recipients = addressTexts(rs)
	r.Size = msg.Size()
	r.Attempts = msg.Attempts()
	if r.ReceptionProtocol == "" {
		if meta, err := msg.Meta(ctx); err == nil { // unreadable metadata is found by whoever needs it
			r.ReceptionProtocol = meta.String(mta.MetaReceptionProtocol)
		}
	}
	return r
}

func addressTexts(rs []mta.Address) []string {
	out := make([]string, len(rs))
	for i, a := range rs {
		out[i] = a.String()
	}
	return out
}

// receptionRecord makes the Reception record of msg from what the receiver kept or, when it kept nothing, from the
// metadata (logs.md section 1).
func receptionRecord(ctx context.Context, queue string, msg *mta.Message) *mta.Record {
	tmpl := msg.TakeReception()
	if tmpl == nil {
		tmpl = new(mta.Record)
		if meta, err := msg.Meta(ctx); err == nil {
			tmpl.Peer, tmpl.TLS = metaPeer(meta), metaTLS(meta)
		}
	}
	t := mta.Reception
	if tmpl.Type != "" { // a report is recorded as what it is
		t = tmpl.Type
	}
	resp := tmpl.Response
	if resp.Code == 0 {
		resp = mta.Response{Code: 250}
	}
	return newRecord(ctx, queue, msg, tmpl, t, msg.Envelope().Recipients, resp)
}

func metaPeer(meta *mta.Meta) *mta.Peer {
	from := meta.String(mta.MetaReceivedFrom)
	if from == "" {
		return nil
	}
	addr, err := netip.ParseAddr(from)
	if err != nil {
		ap, err := netip.ParseAddrPort(from)
		if err != nil {
			return nil
		}
		addr = ap.Addr()
	}
	return &mta.Peer{Name: meta.String(mta.MetaEHLODomain), Addr: addr}
}

func metaTLS(meta *mta.Meta) *mta.TLSInfo {
	cipher, version := meta.String(mta.MetaTLSCipher), meta.String(mta.MetaTLSVersion)
	if cipher == "" && version == "" {
		return nil
	}
	info := &mta.TLSInfo{Cipher: cipher, Version: version}
	names, _ := meta.Get(mta.MetaTLSPeerName)
	list, _ := names.([]any)
	for _, n := range list {
		if s, ok := n.(string); ok {
			info.PeerName = append(info.PeerName, s)
		}
	}
	return info
}

// delayedResponse is the text of a Delayed record (logs.md section 2).
func delayedResponse(context string, delay time.Duration, due time.Time) mta.Response {
	return mta.Response{Code: 400, Content: fmt.Sprintf("Context: %s. Next due in %s at %s",
		context, spanText(delay), due.UTC().Format(time.RFC3339))}
}

// spanText writes a duration in whole units from days to seconds, "0s" for less than one second.
func spanText(d time.Duration) string {
	left := int64(d.Round(time.Second) / time.Second)
	if left <= 0 {
		return "0s"
	}
	var b strings.Builder
	for _, u := range [...]struct {
		secs int64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}} {
		if n := left / u.secs; n > 0 {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%d%s", n, u.name)
			left -= n * u.secs
		}
	}
	return b.String()
}

// note writes a record that is not the last of its message. What cannot be recorded is logged: the message goes on.
func (m *Manager) note(ctx context.Context, msg *mta.Message, r *mta.Record) {
	if err := m.o.Recorder.Record(context.WithoutCancel(ctx), msg, r); err != nil {
		m.log.Error("record not accepted", "type", string(r.Type), "id", r.ID.String(), "err", err)
	}
}
