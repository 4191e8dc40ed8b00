package mta

import (
	"strconv"
	"strings"
)

// EnhancedCode is an enhanced status code (RFC 3463). The zero value means there is none.
type EnhancedCode struct {
	Class, Subject, Detail uint16
}

// IsZero reports whether there is no code.
func (e EnhancedCode) IsZero() bool { return e == EnhancedCode{} }

// String returns "class.subject.detail", or "" for the zero value.
func (e EnhancedCode) String() string {
	if e.IsZero() {
		return ""
	}
	b := make([]byte, 0, 12)
	b = strconv.AppendUint(b, uint64(e.Class), 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(e.Subject), 10)
	b = append(b, '.')
	b = strconv.AppendUint(b, uint64(e.Detail), 10)
	return string(b)
}

// CutEnhancedCode splits a leading enhanced code off text (RFC 2034 section 4). Without one it returns the zero code
// and text unchanged.
func CutEnhancedCode(text string) (EnhancedCode, string) {
	word, rest, _ := strings.Cut(text, " ")
	var e EnhancedCode
	parts := [3]*uint16{&e.Class, &e.Subject, &e.Detail}
	for i, p := range parts {
		digits := word
		if i < 2 {
			var ok bool
			if digits, word, ok = strings.Cut(word, "."); !ok {
				return EnhancedCode{}, text
			}
		}
		if len(digits) == 0 || len(digits) > 3 {
			return EnhancedCode{}, text
		}
		for j := 0; j < len(digits); j++ {
			if digits[j] < '0' || digits[j] > '9' {
				return EnhancedCode{}, text
			}
			*p = *p*10 + uint16(digits[j]-'0')
		}
	}
	if e.Class != 2 && e.Class != 4 && e.Class != 5 {
		return EnhancedCode{}, text
	}
	return e, rest
}

// Response is the reply to one command, or a reply of the service's own making.
type Response struct {
	// Code is the three-digit reply code (RFC 5321 section 4.2).
	Code int
	// Enhanced is the enhanced status code, zero when there is none.
	Enhanced EnhancedCode
	// Content is the text without codes; lines are joined by "\n".
	Content string
	// Command is the command that was answered, "" when unknown.
	Command string
}

// ParseResponse makes a response of a code and a text that may begin with an enhanced code.
func ParseResponse(code int, text string) Response {
	e, rest := CutEnhancedCode(text)
	return Response{Code: code, Enhanced: e, Content: rest}
}

// Internal makes a response of the service's own: its content begins with the prefix that automation rules skip
// (logs.md section 6, rule 4).
func Internal(code int, enhanced EnhancedCode, text string) Response {
	return Response{Code: code, Enhanced: enhanced, Content: InternalPrefix + text}
}

// InternalPrefix begins the content of responses that no peer gave.
const InternalPrefix = "svc internal: "

// OneLine returns the content on one line, line breaks written as escapes.
func (r Response) OneLine() string { return oneLine(r.Content) }

func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return lineEscaper.Replace(s)
}

var lineEscaper = strings.NewReplacer("\r\n", `\r\n`, "\n", `\r\n`, "\r", `\r`)

// String returns "code x.y.z content" on one line, as bounce rules see it (flows CL-2).
func (r Response) String() string {
	s := strconv.Itoa(r.Code)
	if !r.Enhanced.IsZero() {
		s += " " + r.Enhanced.String()
	}
	if r.Content != "" {
		s += " " + r.OneLine()
	}
	return s
}

// Permanent reports whether the code is 500 to 599.
func (r Response) Permanent() bool { return r.Code >= 500 && r.Code < 600 }

// Disposition says what a delivery attempt means for the recipients of a [Result].
type Disposition uint8

const (
	// Delivered: the next hop took responsibility.
	Delivered Disposition = iota
	// Transient: to be tried again.
	Transient
	// Failed: permanently refused.
	Failed
)

// Result is the outcome of one delivery attempt for the recipients that got the same reply (flows SC-28).
type Result struct {
	Recipients  []Address
	Response    Response
	Disposition Disposition
}
