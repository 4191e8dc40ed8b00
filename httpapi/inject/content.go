package inject

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"example.com/svc/httpapi/api"
	"example.com/svc/mta"
	hdr "example.com/svc/mta/mail"
)

// RequestError is a fault of the request as a whole, answered with 422.
type RequestError struct{ Err error }

// Error returns the fault.
func (e *RequestError) Error() string { return e.Err.Error() }

// Unwrap returns the fault.
func (e *RequestError) Unwrap() error { return e.Err }

func bad(format string, args ...any) error { return &RequestError{fmt.Errorf(format, args...)} }

// content is a request's content in the form that serves all recipients.
type content struct {
	// text is a whole message with CRLF line ends; parts is nil then.
	text []byte
	// head holds the fields without To; hasTo says that the request gave one. body holds the rest with the empty line.
	head, body []byte
	hasTo      bool
}

// prepare checks what is not served and builds what is the same for all recipients.
func prepare(r *api.InjectV1Request, now time.Time) (*content, error) {
	switch {
	case r.DeferredSpool:
		return nil, bad("deferred_spool is not served yet")
	case r.DeferredGeneration:
		return nil, bad("deferred_generation is not served yet")
	}
	if err := refuseTemplates(r); err != nil {
		return nil, err
	}
	if r.Content.Object == nil {
		return prepareText(r.Content.Text)
	}
	return prepareObject(r.Content.Object, now)
}

// refuseTemplates returns an error when the content would have to be expanded.
func refuseTemplates(r *api.InjectV1Request) error {
	if r.TemplateDialect == api.Static {
		return nil
	}
	texts := []string{r.Content.Text}
	if o := r.Content.Object; o != nil {
		for _, p := range []*string{o.TextBody, o.HTMLBody, o.Subject} {
			if p != nil {
				texts = append(texts, *p)
			}
		}
		texts = slices.AppendSeq(texts, maps.Values(o.Headers))
	}
	for _, t := range texts {
		for _, open := range []string{"{{", "{%", "{#"} {
			if strings.Contains(t, open) {
				return bad("content has template syntax %q: templates are not served yet, send template_dialect \"Static\" "+
					"to have it taken literally", open)
			}
		}
	}
	return nil
}

// prepareText makes a whole message fit: CRLF line ends, and MIME-Version when it is absent (flows HI-6).
func prepareText(text string) (*content, error) {
	msg := crlf(text)
	h := hdr.Parse(msg)
	if h.Len() == 0 {
		return nil, bad("content has no header fields")
	}
	if _, ok := h.First("MIME-Version"); !ok {
		msg = h.Append(hdr.AppendField(nil, "MIME-Version", "1.0"))
	}
	return &content{text: msg}, nil
}

// crlf normalises line ends: CRLF, lone CR and lone LF each end a line.
func crlf(s string) []byte {
	b := make([]byte, 0, len(s)+len(s)/32)
	for {
		i := strings.IndexAny(s, "\r\n")
		if i < 0 {
			return append(b, s...)
		}
		b = append(append(b, s[:i]...), '\r', '\n')
		if s[i] == '\r' && i+1 < len(s) && s[i+1] == '\n' {
			i++
		}
		s = s[i+1:]
	}
}

// prepareObject builds header and body of a described message (flows HI-3, HI-7).
func prepareObject(o *api.ContentObject, now time.Time) (*content, error) {
	switch {
	case len(o.Attachments) > 0:
		return nil, bad("content.attachments is not served yet")
	case o.AmpHTMLBody != nil:
		return nil, bad("content.amp_html_body is not served yet")
	case o.TextBody == nil && o.HTMLBody == nil:
		return nil, bad("content needs text_body or html_body")
	}
	fields, err := objectFields(o)
	if err != nil {
		return nil, err
	}
	c := &content{}
	seen := map[string]bool{}
	for _, f := range fields {
		seen[strings.ToLower(f[0])] = true
		c.head = hdr.AppendField(c.head, f[0], f[1])
	}
	c.hasTo = seen["to"]
	if !seen["date"] {
		c.head = hdr.AppendField(c.head, "Date", hdr.Date(now))
	}
	if !seen["mime-version"] {
		c.head = hdr.AppendField(c.head, "MIME-Version", "1.0")
	}
	if c.body, err = buildBody(o); err != nil {
		return nil, err
	}
	return c, nil
}

// objectFields returns the header fields of o in order of name; from, subject and reply_to replace given ones.
func objectFields(o *api.ContentObject) ([][2]string, error) {
	own := map[string]string{}
	if o.From != nil {
		v, err := mailbox(*o.From)
		if err != nil {
			return nil, bad("content.from: %w", err)
		}
		own["From"] = v
	}
	if o.ReplyTo != nil {
		v, err := mailbox(*o.ReplyTo)
		if err != nil {
			return nil, bad("content.reply_to: %w", err)
		}
		own["Reply-To"] = v
	}
	if o.Subject != nil {
		own["Subject"] = hdr.EncodeValue("Subject", *o.Subject)
	}
	var fields [][2]string
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		if _, replaced := own[canonical]; replaced {
			continue
		}
		if strings.HasPrefix(canonical, "Content-") {
			return nil, bad("content.headers: %s is made from the bodies", name)
		}
		value := hdr.EncodeValue(name, o.Headers[name])
		if err := hdr.CheckField(name, value); err != nil {
			return nil, bad("content.headers: %w", err)
		}
		fields = append(fields, [2]string{name, value})
	}
	for _, name := range []string{"From", "Reply-To", "Subject"} {
		if v, ok := own[name]; ok {
			fields = append(fields, [2]string{name, v})
		}
	}
	return fields, nil
}

// mailbox formats a name and address for a header (RFC 5322 section 3.4).
func mailbox(f api.FromHeader) (string, error) {
	a, err := mta.ParseAddress(f.Email)
	if err != nil {
		return "", err
	}
	if a.IsNull() {
		return "", errors.New("empty address")
	}
	if strings.ContainsAny(f.Name, "\r\n\x00") {
		return "", errors.New("name has a line break or NUL")
	}
	if f.Name == "" {
		return a.String(), nil
	}
	return (&mail.Address{Name: f.Name, Address: a.String()}).String(), nil
}

// buildBody returns the content fields, the empty line and the body: one part alone, or multipart/alternative.
func buildBody(o *api.ContentObject) ([]byte, error) {
	type part struct{ kind, text string }
	var parts []part
	if o.TextBody != nil {
		parts = append(parts, part{"text/plain", *o.TextBody})
	}
	if o.HTMLBody != nil {
		parts = append(parts, part{"text/html", *o.HTMLBody})
	}
	var b bytes.Buffer
	if len(parts) == 1 {
		b.WriteString("Content-Type: " + parts[0].kind + "; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n")
		if err := writeQP(&b, parts[0].text); err != nil {
			return nil, err
		}
		return b.Bytes(), nil
	}
	w := multipart.NewWriter(&b)
	b.WriteString("Content-Type: " + mime.FormatMediaType("multipart/alternative", map[string]string{"boundary": w.Boundary()}) +
		"\r\n\r\n")
	for _, p := range parts {
		pw, err := w.CreatePart(textproto.MIMEHeader{
			"Content-Type":              {p.kind + "; charset=utf-8"},
			"Content-Transfer-Encoding": {"quoted-printable"},
		})
		if err != nil {
			return nil, err
		}
		if err := writeQP(pw, p.text); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func writeQP(w io.Writer, text string) error {
	qp := quotedprintable.NewWriter(w)
	if _, err := qp.Write(crlf(text)); err != nil {
		return err
	}
	return qp.Close()
}

// room is what is left before the content for trace headers.
const room = 512

// message returns a buffer and the offset at which the message for one recipient begins in it.
func (c *content) message(to api.Recipient) ([]byte, int, error) {
	if c.text != nil {
		buf := make([]byte, room, room+len(c.text))
		return append(buf, c.text...), room, nil
	}
	buf := make([]byte, room, room+len(c.head)+len(c.body)+256)
	if !c.hasTo {
		v, err := mailbox(api.FromHeader{Email: to.Email, Name: to.Name})
		if err != nil {
			return nil, 0, err
		}
		buf = hdr.AppendField(buf, "To", v)
	}
	buf = append(buf, c.head...)
	return append(buf, c.body...), room, nil
}
