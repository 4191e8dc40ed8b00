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

// Supplemental builds the supplemental trace header (flows SM-48): base64 of a JSON object with the marker, the
// recipients and the values of the listed metadata that get knows, folded at 75 columns.
func Supplemental(name string, recipients []string, include []string, get func(key string) (any, bool)) ([]byte, error) {
	obj := make(map[string]any, len(include)+2)
	for _, key := range include {
		if v, ok := get(key); ok {
			obj[key] = v
		}
	}
	obj["_@_"] = supplementalMarker
	if len(recipients) == 1 {
		obj["recipient"] = recipients[0]
	} else {
		obj["recipient"] = recipients
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("supplemental trace header: %w", err)
	}
	if err := CheckField(name, ""); err != nil {
		return nil, fmt.Errorf("supplemental trace header: %w", err)
	}
	enc := base64.StdEncoding.EncodeToString(text)
	b := make([]byte, 0, len(name)+len(enc)+len(enc)/25+8)
	b = append(append(b, name...), ": "...)
	col := len(b)
	for len(enc) > 0 {
		n := min(max(foldColumn-col, 1), len(enc))
		b = append(b, enc[:n]...)
		if enc = enc[n:]; len(enc) > 0 {
			b = append(b, "\r\n\t"...)
			col = 1
		}
	}
	return append(b, "\r\n"...), nil
}

// Date formats t as a date-time (RFC 5322 section 3.3).
func Date(t time.Time) string { return t.Format("Mon, 02 Jan 2006 15:04:05 -0700") }
