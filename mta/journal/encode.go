package journal

import (
	"net/netip"
	"strconv"
	"time"

	"example.com/svc/mta"
)

// appendRecord writes the record without its closing brace and without meta and headers, which differ between loggers
// (logs.md section 1). "reception" is the reception protocol, "" for null.
func appendRecord(b []byte, r *mta.Record, node, reception string, now time.Time) []byte {
	b = append(b, `{"type":"`...)
	b = append(b, r.Type...) // a name of our own, which needs no escapes
	b = append(b, `","id":"`...)
	if !r.ID.IsZero() {
		b, _ = r.ID.AppendText(b) // never fails
	}
	b = append(b, `","sender":`...)
	b = appendString(b, r.Sender)
	b = append(b, `,"recipient":`...)
	b = appendRecipients(b, r.Recipients)
	b = append(b, `,"queue":`...)
	b = appendString(b, r.Queue)
	b = append(b, `,"site":`...)
	b = appendString(b, r.Site)
	b = append(b, `,"size":`...)
	b = strconv.AppendInt(b, int64(max(r.Size, 0)), 10)
	b = appendResponse(b, &r.Response)
	b = appendPeer(b, r.Peer)
	b = appendTimes(b, r, now)
	b = append(b, `,"num_attempts":`...)
	b = appendU16(b, r.Attempts)
	b = append(b, `,"bounce_classification":`...)
	if r.Classification == "" {
		b = append(b, `"Uncategorized"`...)
	} else {
		b = appendString(b, r.Classification)
	}
	b = append(b, `,"egress_pool":`...)
	b = appendStringOrNull(b, r.EgressPool)
	b = append(b, `,"egress_source":`...)
	b = appendStringOrNull(b, r.EgressSource)
	b = appendSource(b, r.SourceAddress)
	b = append(b, `,"feedback_report":null,"delivery_protocol":`...)
	b = appendStringOrNull(b, r.DeliveryProtocol)
	b = append(b, `,"reception_protocol":`...)
	b = appendStringOrNull(b, reception)
	b = append(b, `,"nodeid":`...)
	b = appendString(b, node)
	return appendOptional(b, r)
}

// appendRecipients writes a string for one recipient, "" for none, and an array for several.
func appendRecipients(b []byte, rcpts []string) []byte {
	switch len(rcpts) {
	case 0:
		return append(b, '"', '"')
	case 1:
		return appendString(b, rcpts[0])
	}
	return appendStrings(b, rcpts)
}

func appendResponse(b []byte, r *mta.Response) []byte {
	b = append(b, `,"response":{"code":`...)
	b = appendU16(b, r.Code)
	b = append(b, `,"enhanced_code":`...)
	if r.Enhanced.IsZero() {
		b = append(b, "null"...)
	} else {
		b = append(b, `{"class":`...)
		b = strconv.AppendUint(b, uint64(r.Enhanced.Class), 10)
		b = append(b, `,"subject":`...)
		b = strconv.AppendUint(b, uint64(r.Enhanced.Subject), 10)
		b = append(b, `,"detail":`...)
		b = strconv.AppendUint(b, uint64(r.Enhanced.Detail), 10)
		b = append(b, '}')
	}
	b = append(b, `,"content":`...)
	b = appendString(b, r.OneLine())
	b = append(b, `,"command":`...)
	b = appendStringOrNull(b, r.Command)
	return append(b, '}')
}

func appendPeer(b []byte, p *mta.Peer) []byte {
	if p == nil {
		return append(b, `,"peer_address":null`...)
	}
	b = append(b, `,"peer_address":{"name":`...)
	b = appendString(b, p.Name)
	b = append(b, `,"addr":"`...)
	if p.Addr.IsValid() {
		b = p.Addr.Unmap().WithZone("").AppendTo(b)
	}
	b = append(b, '"')
	if p.Secure {
		b = append(b, `,"is_secure":true`...)
	}
	return append(b, '}')
}

// appendTimes writes when it happened and when the message was received, which for a record without a message is the
// same.
func appendTimes(b []byte, r *mta.Record, now time.Time) []byte {
	at, created := r.Time, r.Created
	if at.IsZero() {
		at = now
	}
	if created.IsZero() {
		created = r.ID.Time()
	}
	if created.IsZero() {
		created = at
	}
	b = append(b, `,"timestamp":`...)
	b = strconv.AppendInt(b, at.Unix(), 10)
	b = append(b, `,"event_time":`...)
	b = appendTime(b, at)
	b = append(b, `,"created":`...)
	b = strconv.AppendInt(b, created.Unix(), 10)
	b = append(b, `,"created_time":`...)
	return appendTime(b, created)
}

func appendSource(b []byte, s *mta.SourceAddress) []byte {
	if s == nil {
		return append(b, `,"source_address":null`...)
	}
	b = append(b, `,"source_address":{"address":"`...)
	if s.Address.IsValid() {
		a := netip.AddrPortFrom(s.Address.Addr().Unmap().WithZone(""), s.Address.Port())
		b = a.AppendTo(b)
	}
	b = append(b, '"')
	if s.Protocol != "" {
		b = append(b, `,"protocol":`...)
		b = appendString(b, s.Protocol)
		b = append(b, `,"server":`...)
		b = appendString(b, s.Server)
	}
	return append(b, '}')
}

// appendOptional writes the fields that are absent when unknown.
func appendOptional(b []byte, r *mta.Record) []byte {
	if t := r.TLS; t != nil {
		if t.Cipher != "" {
			b = append(b, `,"tls_cipher":`...)
			b = appendString(b, t.Cipher)
		}
		if t.Version != "" {
			b = append(b, `,"tls_protocol_version":`...)
			b = appendString(b, t.Version)
		}
		b = append(b, `,"tls_peer_subject_name":`...)
		b = appendStrings(b, t.PeerName)
	}
	if r.Provider != "" {
		b = append(b, `,"provider_name":`...)
		b = appendString(b, r.Provider)
	}
	if r.SessionID != "" {
		b = append(b, `,"session_id":`...)
		b = appendString(b, r.SessionID)
	}
	return b
}

func appendU16(b []byte, n int) []byte {
	return strconv.AppendInt(b, int64(min(max(n, 0), 0xffff)), 10)
}
