package mail

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"
)

// TraceHeaders says which trace headers a listener adds (settings start_esmtp_listener trace_headers).
type TraceHeaders struct {
	// ReceivedHeader adds Received (RFC 5321 section 4.4).
	ReceivedHeader bool `set:"received_header" default:"true" json:"received_header"`
	// SupplementalHeader adds the header that lets reports be matched with what was sent.
	SupplementalHeader bool `set:"supplemental_header" default:"true" json:"supplemental_header"`
	// HeaderName is the name of the supplemental header.
	HeaderName string `set:"header_name" default:"X-SvcRef" json:"header_name"`
	// IncludeMetaNames are metadata keys whose values the supplemental header carries.
	IncludeMetaNames []string `set:"include_meta_names" json:"include_meta_names"`
}

// DefaultTraceHeader is the name of the supplemental header unless configured.
const DefaultTraceHeader = "X-SvcRef"

// supplementalMarker tells the supplemental header from other base64 (flows SM-48).
const supplementalMarker = `\_/`

// foldAt is how many columns of base64 stand on one line.
const foldAt = 74

// AppendSupplemental appends the supplemental trace header to b (flows SM-48): base64 of a JSON object with the marker,
// the recipients and the values of the listed metadata that get knows; unset ones are left out (SM-49). The name must
// be a field name; see [CheckField].
func AppendSupplemental(b []byte, name string, recipients, include []string, get func(key string) (any, bool)) ([]byte, error) {
	var plain, coded [512]byte
	payload, err := appendPayload(plain[:0], recipients, include, get)
	if err != nil {
		return nil, fmt.Errorf("supplemental trace header: %w", err)
	}
	enc := base64.StdEncoding.AppendEncode(coded[:0], payload)
	start := len(b)
	b = append(append(b, name...), ": "...)
	for first := max(1, foldAt-(len(b)-start)); len(enc) > 0; first = foldAt {
		n := min(first, len(enc))
		b = append(append(b, enc[:n]...), '\r', '\n')
		if enc = enc[n:]; len(enc) > 0 {
			b = append(b, '\t')
		}
	}
	return b, nil
}

func appendPayload(b []byte, recipients, include []string, get func(string) (any, bool)) ([]byte, error) {
	if len(recipients) == 1 && len(include) == 0 && plainJSON(recipients[0]) {
		return append(append(append(b, `{"_@_":"\\_/","recipient":"`...), recipients[0]...), `"}`...), nil
	}
	p := make(map[string]any, 2+len(include))
	for _, key := range include {
		if v, ok := get(key); ok {
			p[key] = v
		}
	}
	p["_@_"] = supplementalMarker
	p["recipient"] = recipients
	if len(recipients) == 1 {
		p["recipient"] = recipients[0]
	}
	return json.Marshal(p)
}

// plainJSON reports whether s stands in JSON as it is.
func plainJSON(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Date formats t as a date-time (RFC 5322 section 3.3).
func Date(t time.Time) string { return t.Format("Mon, 02 Jan 2006 15:04:05 -0700") }
