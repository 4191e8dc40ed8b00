package journal

import (
	"encoding/json"
	"maps"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/svc/mta"
	"example.com/svc/spool"
)

const (
	testNode = "3d0c1f5e-6d59-4c67-8f2a-0d8a4f3f7c11"
	testID   = "0b1f6a2cc4d711f09e5d0242ac110002"
)

func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// base is what the examples of logs.md section 9 have in common.
func base(t testing.TB) mta.Record {
	t.Helper()
	id, err := spool.ParseID(testID)
	if err != nil {
		t.Fatal(err)
	}
	return mta.Record{
		Type: mta.Delivery, ID: id, Sender: "news@send.example", Recipients: []string{"ann@dest.example"},
		Queue: "spring:acme@dest.example", Site: "ip-7->(mx1|mx2).dest.example@smtp_client", Size: 2410,
		Response: mta.Response{Code: 250, Enhanced: mta.EnhancedCode{Class: 2}, Content: "queued as 77F", Command: "."},
		Peer:     &mta.Peer{Name: "mx1.dest.example.", Addr: netip.MustParseAddr("203.0.113.5")},
		Time:     at(t, "2026-01-01T00:00:01.100Z"), Created: at(t, "2026-01-01T00:00:00.250Z"),
		EgressPool: "main", EgressSource: "ip-7",
		SourceAddress:    &mta.SourceAddress{Address: netip.MustParseAddrPort("198.51.100.7:41234")},
		DeliveryProtocol: "ESMTP", ReceptionProtocol: "ESMTP",
		TLS: &mta.TLSInfo{Version: "TLSv1.3", Cipher: "TLS_AES_128_GCM_SHA256",
			PeerName: []string{"CN=mx1.dest.example"}},
		SessionID: "8e1f1c1e-6a1d-4c9e-9b0e-5f3c2b1a0d9e",
	}
}

const deliveryText = `{"type":"Delivery","id":"0b1f6a2cc4d711f09e5d0242ac110002","sender":"news@send.example",
"recipient":"ann@dest.example","queue":"spring:acme@dest.example","site":"ip-7->(mx1|mx2).dest.example@smtp_client",
"size":2410,"response":{"code":250,"enhanced_code":{"class":2,"subject":0,"detail":0},"content":"queued as 77F",
"command":"."},"peer_address":{"name":"mx1.dest.example.","addr":"203.0.113.5"},"timestamp":1767225601,
"event_time":"2026-01-01T00:00:01.100Z","created":1767225600,"created_time":"2026-01-01T00:00:00.250Z",
"num_attempts":0,"bounce_classification":"Uncategorized","egress_pool":"main","egress_source":"ip-7",
"source_address":{"address":"198.51.100.7:41234"},"feedback_report":null,"meta":{},"headers":{},
"delivery_protocol":"ESMTP","reception_protocol":"ESMTP","nodeid":"3d0c1f5e-6d59-4c67-8f2a-0d8a4f3f7c11",
"tls_cipher":"TLS_AES_128_GCM_SHA256","tls_protocol_version":"TLSv1.3",
"tls_peer_subject_name":["CN=mx1.dest.example"],"session_id":"8e1f1c1e-6a1d-4c9e-9b0e-5f3c2b1a0d9e"}`

// atHome removes what only a dispatcher's record has.
func atHome(r *mta.Record) {
	r.Site, r.Peer, r.EgressPool, r.EgressSource, r.SourceAddress, r.DeliveryProtocol, r.TLS, r.SessionID =
		"", nil, "", "", nil, "", nil, ""
}

const atHomeText = `"site":"","peer_address":null,"egress_pool":null,"egress_source":null,"source_address":null,
"delivery_protocol":null,"tls_cipher":absent,"tls_protocol_version":absent,"tls_peer_subject_name":absent,
"session_id":absent`

// recordTests pairs what is changed in the Delivery record with what changes in its text.
var recordTests = []struct {
	name string
	edit func(r *mta.Record)
	diff string
}{
	{"Delivery", func(*mta.Record) {}, ``},
	{"Delivery to two", func(r *mta.Record) { r.Recipients = append(r.Recipients, "bob@dest.example") },
		`"recipient":["ann@dest.example","bob@dest.example"]`},
	{"Delivery through a proxy with DNSSEC", func(r *mta.Record) {
		r.SourceAddress = &mta.SourceAddress{Address: netip.MustParseAddrPort("[2001:db8::7]:0"), Protocol: "haproxy",
			Server: "192.0.2.1:5000"}
		r.Peer = &mta.Peer{Name: "mx", Addr: netip.MustParseAddr("::ffff:203.0.113.5"), Secure: true}
		r.TLS = &mta.TLSInfo{Version: "TLSv1.2"}
		r.Provider = "dest"
	}, `"source_address":{"address":"[2001:db8::7]:0","protocol":"haproxy","server":"192.0.2.1:5000"},
		"peer_address":{"name":"mx","addr":"203.0.113.5","is_secure":true},"tls_cipher":absent,
		"tls_protocol_version":"TLSv1.2","tls_peer_subject_name":[],"provider_name":"dest"`},
	{"Reception", func(r *mta.Record) {
		atHome(r)
		r.Type, r.Size, r.Response = mta.Reception, 2311, mta.Response{Code: 250}
		r.Peer = &mta.Peer{Name: "app1.send.example", Addr: netip.MustParseAddr("192.0.2.10")}
		r.Time = r.Created.Add(time.Millisecond)
		r.SessionID = "6f8f0a52-7a4b-4e55-a0a8-3f1a4f3a9a10"
	}, atHomeText + `,"type":"Reception","size":2311,"response":{"code":250,"enhanced_code":null,"content":"",
		"command":null},"peer_address":{"name":"app1.send.example","addr":"192.0.2.10"},"timestamp":1767225600,
		"event_time":"2026-01-01T00:00:00.251Z","session_id":"6f8f0a52-7a4b-4e55-a0a8-3f1a4f3a9a10"`},
	{"TransientFailure", func(r *mta.Record) {
		r.Type, r.Attempts, r.Classification = mta.TransientFailure, 1, "QuotaIssues"
		r.Response = mta.Response{Code: 452, Enhanced: mta.EnhancedCode{Class: 4, Subject: 2, Detail: 2},
			Content: "mailbox full", Command: "RCPT TO:<ann@dest.example>"}
	}, `"type":"TransientFailure","num_attempts":1,"bounce_classification":"QuotaIssues","response":{"code":452,
		"enhanced_code":{"class":4,"subject":2,"detail":2},"content":"mailbox full",
		"command":"RCPT TO:<ann@dest.example>"}`},
	{"Bounce", func(r *mta.Record) {
		r.Type, r.Classification = mta.Bounce, "InvalidRecipient"
		r.Response = mta.Response{Code: 550, Enhanced: mta.EnhancedCode{Class: 5, Subject: 1, Detail: 1},
			Content: "no such\r\nuser\nhere", Command: "RCPT TO:<ann@dest.example>"}
	}, `"type":"Bounce","bounce_classification":"InvalidRecipient","response":{"code":550,
		"enhanced_code":{"class":5,"subject":1,"detail":1},"content":"no such\\r\\nuser\\r\\nhere",
		"command":"RCPT TO:<ann@dest.example>"}`},
	{"Expiration", func(r *mta.Record) {
		atHome(r)
		r.Type = mta.Expiration
		r.Response = mta.Response{Code: 551, Enhanced: mta.EnhancedCode{Class: 5, Subject: 4, Detail: 7},
			Content: "Next delivery time would be 8days after creation, which exceeds max_age=7days"}
	}, atHomeText + `,"type":"Expiration","response":{"code":551,"enhanced_code":{"class":5,"subject":4,"detail":7},
		"content":"Next delivery time would be 8days after creation, which exceeds max_age=7days","command":null}`},
	{"AdminBounce", func(r *mta.Record) {
		atHome(r)
		r.Type, r.Site = mta.AdminBounce, "localhost"
		r.Response = mta.Response{Code: 551, Enhanced: mta.EnhancedCode{Class: 5, Subject: 7, Detail: 1},
			Content: "Administrator bounced with reason: bad list"}
	}, atHomeText + `,"type":"AdminBounce","site":"localhost","response":{"code":551,
		"enhanced_code":{"class":5,"subject":7,"detail":1},"content":"Administrator bounced with reason: bad list",
		"command":null}`},
	{"AdminRebind", func(r *mta.Record) {
		atHome(r)
		r.Type, r.Queue = mta.AdminRebind, "other.example"
		r.Response = mta.Response{Code: 250, Content: "Rebound from dest.example to other.example: move"}
	}, atHomeText + `,"type":"AdminRebind","queue":"other.example","response":{"code":250,"enhanced_code":null,
		"content":"Rebound from dest.example to other.example: move","command":null}`},
	{"DeferredInjectionRebind", func(r *mta.Record) {
		atHome(r)
		r.Type, r.DeliveryProtocol = mta.DeferredRebind, "DeferredSmtpInjection"
		r.Response = mta.Response{Code: 250, Content: "ok"}
	}, atHomeText + `,"type":"DeferredInjectionRebind","delivery_protocol":"DeferredSmtpInjection",
		"response":{"code":250,"enhanced_code":null,"content":"ok","command":null}`},
	{"Delayed", func(r *mta.Record) {
		atHome(r)
		r.Type = mta.Delayed
		r.Response = mta.Response{Code: 400,
			Content: "Context: Received, ReadyQueueWasFull. Next due in 42s at 2026-01-01T00:00:42Z"}
	}, atHomeText + `,"type":"Delayed","response":{"code":400,"enhanced_code":null,
		"content":"Context: Received, ReadyQueueWasFull. Next due in 42s at 2026-01-01T00:00:42Z","command":null}`},
	{"Rejection", func(r *mta.Record) {
		atHome(r)
		r.Type, r.ID, r.Sender, r.Recipients, r.Queue, r.Size = mta.RejectionRecord, spool.ID{}, "a@x.example", nil, "", 0
		r.Created, r.ReceptionProtocol, r.Classification = time.Time{}, "", "RelayDenied"
		r.Time = r.Time.Add(98900 * time.Millisecond)
		r.Response = mta.Response{Code: 550, Enhanced: mta.EnhancedCode{Class: 5, Subject: 7, Detail: 1},
			Content: "relaying not permitted for 192.0.2.99:5123", Command: "RCPT TO:<b@y.example>"}
		r.Peer = &mta.Peer{Name: "client.example", Addr: netip.MustParseAddr("192.0.2.99")}
		r.SessionID = "1c2d3e4f-0000-4000-8000-000000000001"
	}, atHomeText + `,"type":"Rejection","id":"","sender":"a@x.example","recipient":"","queue":"","size":0,
		"response":{"code":550,"enhanced_code":{"class":5,"subject":7,"detail":1},
		"content":"relaying not permitted for 192.0.2.99:5123","command":"RCPT TO:<b@y.example>"},
		"peer_address":{"name":"client.example","addr":"192.0.2.99"},"timestamp":1767225700,
		"event_time":"2026-01-01T00:01:40Z","created":1767225700,"created_time":"2026-01-01T00:01:40Z",
		"bounce_classification":"RelayDenied","reception_protocol":null,
		"session_id":"1c2d3e4f-0000-4000-8000-000000000001"`},
	{"OOB", func(r *mta.Record) {
		atHome(r)
		r.Type, r.Sender, r.Size = mta.OOB, "bounces@send.example", 0
		r.Peer = &mta.Peer{Name: "mx1.dest.example", Addr: netip.MustParseAddr("203.0.113.5")}
		r.Response = mta.Response{Code: 550, Enhanced: mta.EnhancedCode{Class: 5, Subject: 1, Detail: 1},
			Content: "5.1.1 user unknown"}
	}, atHomeText + `,"type":"OOB","sender":"bounces@send.example","size":0,
		"peer_address":{"name":"mx1.dest.example","addr":"203.0.113.5"},"response":{"code":550,
		"enhanced_code":{"class":5,"subject":1,"detail":1},"content":"5.1.1 user unknown","command":null}`},
	{"Feedback", func(r *mta.Record) {
		atHome(r)
		r.Type, r.Response = mta.Feedback, mta.Response{Code: 250}
	}, atHomeText + `,"type":"Feedback","response":{"code":250,"enhanced_code":null,"content":"","command":null}`},
	{"XferOut", func(r *mta.Record) {
		atHome(r)
		r.Type, r.DeliveryProtocol = mta.XferOut, "xfer"
		r.Response = mta.Response{Code: 250, Content: "new id is 5d"}
	}, atHomeText + `,"type":"XferOut","delivery_protocol":"xfer","response":{"code":250,"enhanced_code":null,
		"content":"new id is 5d","command":null}`},
	{"XferIn", func(r *mta.Record) {
		atHome(r)
		r.Type, r.DeliveryProtocol, r.Response = mta.XferIn, "xfer", mta.Response{Code: 250}
		r.Peer = &mta.Peer{Addr: netip.MustParseAddr("10.0.0.2")}
	}, atHomeText + `,"type":"XferIn","delivery_protocol":"xfer","peer_address":{"name":"","addr":"10.0.0.2"},
		"response":{"code":250,"enhanced_code":null,"content":"","command":null}`},
	{"numbers out of range", func(r *mta.Record) { r.Attempts, r.Size, r.Response.Code = 1<<20, -1, -3 },
		`"num_attempts":65535,"size":0,"response":{"code":0,"enhanced_code":{"class":2,"subject":0,"detail":0},
		"content":"queued as 77F","command":"."}`},
}

// decode reads a JSON object; a later key replaces an earlier one, and "absent" removes it.
func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	dec := json.NewDecoder(strings.NewReader(strings.ReplaceAll(text, ":absent", `:"absent"`)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestRecordShapes(t *testing.T) {
	seen := map[mta.RecordType]bool{}
	for _, tc := range recordTests {
		t.Run("logs 9 "+tc.name, func(t *testing.T) {
			r := base(t)
			tc.edit(&r)
			seen[r.Type] = true
			want := decode(t, deliveryText)
			maps.Copy(want, decode(t, "{"+tc.diff+"}"))
			maps.DeleteFunc(want, func(_ string, v any) bool { return v == "absent" })
			text := appendRecord(nil, &r, testNode, r.ReceptionProtocol, time.Now())
			got := decode(t, string(text)+`,"meta":{},"headers":{}}`)
			for k := range want {
				if !reflect.DeepEqual(got[k], want[k]) {
					t.Errorf("%s is %#v, want %#v", k, got[k], want[k])
				}
			}
			for k := range got {
				if _, ok := want[k]; !ok {
					t.Errorf("%s should be absent", k)
				}
			}
		})
	}
	for _, typ := range mta.RecordTypes {
		if !seen[typ] {
			t.Errorf("record type %s has no example", typ)
		}
	}
}

func TestTimesOfARecord(t *testing.T) {
	now := at(t, "2026-03-04T05:06:07.000000089Z")
	r := mta.Record{Type: mta.Reception}
	got := decode(t, string(appendRecord(nil, &r, "", "", now))+"}")
	if got["event_time"] != "2026-03-04T05:06:07.000000089Z" || got["created_time"] != got["event_time"] {
		t.Errorf("without an id: %v, %v", got["event_time"], got["created_time"])
	}
	r = base(t)
	r.Created = time.Time{}
	got = decode(t, string(appendRecord(nil, &r, "", "", now))+"}")
	if want := r.ID.Time().Format("2006-01-02T15:04:05"); !strings.HasPrefix(got["created_time"].(string), want) {
		t.Errorf("created_time is %v, want that of the id, %s", got["created_time"], want)
	}
}

func TestValues(t *testing.T) {
	deep := any("x")
	for range 200 {
		deep = []any{deep}
	}
	for _, tc := range []struct {
		v    any
		want string
	}{
		{nil, `null`}, {true, `true`}, {int64(math.MinInt64), `-9223372036854775808`}, {1.5, `1.5`}, {1e300, `1e+300`},
		{math.NaN(), `null`}, {math.Inf(-1), `null`}, {struct{}{}, `null`}, {[]any{}, `[]`},
		{[]any{"a", nil, map[string]any{"z": int64(1), "b": false}}, `["a",null,{"b":false,"z":1}]`},
	} {
		got := string(appendValue(nil, tc.v, 0))
		if got != tc.want || !json.Valid([]byte(got)) {
			t.Errorf("%v: got %s, want %s", tc.v, got, tc.want)
		}
	}
	if got := appendValue(nil, deep, 0); !json.Valid(got) || len(got) > 200 {
		t.Errorf("deep nesting gives %s", got)
	}
}

func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", "12345678", `1234567"`, "\x00\x1f\x7f\u2028", "\xff12345678\xfe", "zwölf Boxkämpfer",
		`back\slash`, "seven77\n", "tab\tlf\ncr\r", "a\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		b := appendString([]byte("x"), s)
		var got string
		if err := json.Unmarshal(b[1:], &got); err != nil {
			t.Fatalf("%q gives %q: %v", s, b, err)
		}
		want := s
		if !utf8.ValidString(s) {
			want = string([]rune(s)) // each bad byte becomes U+FFFD
		}
		if got != want {
			t.Fatalf("%q reads back as %q", s, got)
		}
	})
}
