package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// InjectV1Request asks to build and queue one message per recipient (POST /api/inject/v1).
type InjectV1Request struct {
	// EnvelopeSender is the MAIL FROM address; empty for the null sender.
	EnvelopeSender string `json:"envelope_sender"`
	// Recipients get one message each.
	Recipients []Recipient `json:"recipients"`
	// Content is the message text or a build description.
	Content Content `json:"content"`
	// Substitutions are template variables for all recipients.
	Substitutions map[string]any `json:"substitutions,omitempty"`
	// DeferredSpool and DeferredGeneration are false unless given.
	DeferredSpool      bool `json:"deferred_spool,omitempty"`
	DeferredGeneration bool `json:"deferred_generation,omitempty"`
	// TraceHeaders are the trace header options; nil for the defaults.
	TraceHeaders *HttpTraceHeaders `json:"trace_headers,omitempty"`
	// TemplateDialect is Jinja unless given.
	TemplateDialect TemplateDialectWithSchema `json:"template_dialect,omitempty"`
}

// UnmarshalJSON refuses unknown keys and wants the required ones.
func (r *InjectV1Request) UnmarshalJSON(b []byte) error {
	type plain InjectV1Request
	v := struct {
		plain
		EnvelopeSender *string      `json:"envelope_sender"`
		Recipients     *[]Recipient `json:"recipients"`
		Content        *Content     `json:"content"`
	}{}
	if err := strict(b, &v); err != nil {
		return err
	}
	switch {
	case v.EnvelopeSender == nil:
		return errors.New("missing field envelope_sender")
	case v.Recipients == nil:
		return errors.New("missing field recipients")
	case v.Content == nil:
		return errors.New("missing field content")
	}
	*r = InjectV1Request(v.plain)
	r.EnvelopeSender, r.Recipients, r.Content = *v.EnvelopeSender, *v.Recipients, *v.Content
	return nil
}

// Recipient is one recipient of an injection.
type Recipient struct {
	// Email is the envelope recipient.
	Email string `json:"email"`
	// Name is the display name; "" for none.
	Name string `json:"name,omitempty"`
	// Substitutions are template variables for this recipient.
	Substitutions map[string]any `json:"substitutions,omitempty"`
	// Metadata is stored as the message meta "extra" when it is not empty.
	Metadata map[string]any `json:"metadata,omitempty"`
}

// UnmarshalJSON refuses unknown keys.
func (r *Recipient) UnmarshalJSON(b []byte) error {
	type plain Recipient
	return strict(b, (*plain)(r))
}

// Content is either a whole message or a description of what to build.
type Content struct {
	// Text is a whole message (RFC 5322); it counts when Object is nil.
	Text string
	// Object describes what to build.
	Object *ContentObject
}

// ContentObject describes a message to build.
type ContentObject struct {
	TextBody    *string           `json:"text_body,omitempty"`
	HTMLBody    *string           `json:"html_body,omitempty"`
	AmpHTMLBody *string           `json:"amp_html_body,omitempty"`
	Attachments []Attachment      `json:"attachments,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	From        *FromHeader       `json:"from,omitempty"`
	Subject     *string           `json:"subject,omitempty"`
	ReplyTo     *FromHeader       `json:"reply_to,omitempty"`
}

// UnmarshalJSON reads a string or an object.
func (c *Content) UnmarshalJSON(b []byte) error {
	*c = Content{}
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Text)
	}
	c.Object = new(ContentObject)
	return strict(b, c.Object)
}

// MarshalJSON writes a string or an object.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.Object != nil {
		return json.Marshal(c.Object)
	}
	return json.Marshal(c.Text)
}

// Attachment is one attached part of a built message.
type Attachment struct {
	Data        string  `json:"data"`
	ContentType string  `json:"content_type"`
	Base64      bool    `json:"base64,omitempty"`
	ContentID   *string `json:"content_id,omitempty"`
	FileName    *string `json:"file_name,omitempty"`
}

// FromHeader is a mailbox.
type FromHeader struct {
	// Email is the address.
	Email string `json:"email"`
	// Name is the display name; "" for none.
	Name string `json:"name,omitempty"`
}

// UnmarshalJSON refuses unknown keys.
func (f *FromHeader) UnmarshalJSON(b []byte) error {
	type plain FromHeader
	return strict(b, (*plain)(f))
}

// HttpTraceHeaders are the trace header options of an injection; begin with [DefaultHttpTraceHeaders].
type HttpTraceHeaders struct { //nolint:revive // named as in the schema
	ReceivedHeader     bool     `json:"received_header"`
	SupplementalHeader bool     `json:"supplemental_header"`
	HeaderName         string   `json:"header_name"`
	IncludeMetaNames   []string `json:"include_meta_names"`
}

// DefaultHttpTraceHeaders returns the options of a request that gives none.
func DefaultHttpTraceHeaders() HttpTraceHeaders {
	return HttpTraceHeaders{SupplementalHeader: true, HeaderName: "X-SvcRef"}
}

// UnmarshalJSON begins with the defaults and refuses unknown keys.
func (t *HttpTraceHeaders) UnmarshalJSON(b []byte) error {
	type plain HttpTraceHeaders
	*t = DefaultHttpTraceHeaders()
	return strict(b, (*plain)(t))
}

// TemplateDialectWithSchema names a template engine.
type TemplateDialectWithSchema string

// Template engines.
const (
	Jinja      TemplateDialectWithSchema = "Jinja"
	Static     TemplateDialectWithSchema = "Static"
	Handlebars TemplateDialectWithSchema = "Handlebars"
)

// UnmarshalText refuses other names.
func (d *TemplateDialectWithSchema) UnmarshalText(text []byte) error {
	switch v := TemplateDialectWithSchema(text); v {
	case Jinja, Static, Handlebars:
		*d = v
		return nil
	}
	return fmt.Errorf("unknown template dialect %q, want Jinja, Static or Handlebars", text)
}

// InjectV1Response counts what became of the recipients.
type InjectV1Response struct {
	SuccessCount     int      `json:"success_count"`
	FailCount        int      `json:"fail_count"`
	FailedRecipients []string `json:"failed_recipients"`
	Errors           []string `json:"errors"`
}

// strict decodes one JSON value and refuses keys that dst does not have.
func strict(b []byte, dst any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(dst); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the JSON value")
	}
	return nil
}
