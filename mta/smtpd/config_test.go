package smtpd

import (
	"strings"
	"testing"
	"time"

	"example.com/svc/mta/settings"
)

func TestConfig(t *testing.T) {
	c := settings.New[Config]()
	// SM-9
	if c.Listen != "127.0.0.1:2025" || c.MaxConnections != 32768 || c.ClientTimeout.D() != time.Minute ||
		c.DataProcessingTimeout.D() != 5*time.Minute || c.MaxMessagesPerConnection != 10000 ||
		c.MaxRecipientsPerMessage != 1024 || c.MaxMessageSize != 20<<20 || c.DataBufferSize != 128<<10 ||
		c.LineLengthHardLimit != 998 || c.InvalidLineEndings != DenyEndings || c.BatchHandling != BifurcateAlways ||
		len(c.RelayHosts) != 2 || !c.TraceHeaders.ReceivedHeader || !c.TraceHeaders.SupplementalHeader ||
		c.TraceHeaders.HeaderName != "X-SvcRef" || c.Banner != "svc" {
		t.Errorf("defaults: %+v", c)
	}
	tests := []struct{ json, want string }{
		{`{"listen":"0.0.0.0:25","relay_hosts":["10.0.0.0/8"],"meta":{"x_a":1},"trace_headers":{"header_name":"X-Ours"}}`, ""},
		{`{"listen":"localhost"}`, "listen"},
		{`{"peer":{}}`, "not served yet"},
		{`{"allow_xclient":true}`, "not served yet"},
		{`{"require_proxy_protocol":true}`, "not served yet"},
		{`{"deferred_queue":true}`, "not served yet"},
		{`{"invalid_line_endings":"deny"}`, "invalid_line_endings"},
		{`{"max_recipients":1}`, "max_recipients"},
		{`{"relay_hosts":["10.0.0.1/8"]}`, "10.0.0.0/8"},
		{`{"line_length_hard_limit":10}`, "line_length_hard_limit"},
		{`{"max_message_size":0}`, "max_message_size"},
		{`{"tls_certificate":"/x.pem"}`, "go together"},
		{`{"hostname":"a\r\nb"}`, "hostname"},
		{`{"trace_headers":{"header_name":"a b"}}`, "header_name"},
		{`{"client_timeout":"0s"}`, "client_timeout"},
	}
	for _, tt := range tests {
		c := settings.New[Config]()
		err := settings.DecodeJSON("start_esmtp_listener", []byte(tt.json), &c)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v", tt.json, err)
		}
	}
}

func TestListenerDomain(t *testing.T) {
	for json, want := range map[string]string{
		`{"relay_to":true,"relay_from":["10.0.0.0/8"],"log_arf":false,"log_oob":"Ignore"}`: "",
		`{"log_arf":true}`:            "not served yet",
		`{"log_oob":"LogThenDrop"}`:   "not served yet",
		`{"log_oob":"Whatever"}`:      "log_oob",
		`{"relay_form":["10.0.0.1"]}`: "relay_from",
	} {
		var d ListenerDomain
		err := settings.DecodeJSON("make_listener_domain", []byte(json), &d)
		if want == "" && (err != nil || !d.RelayTo || len(d.RelayFrom) != 1) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", json, err)
		}
	}
}
