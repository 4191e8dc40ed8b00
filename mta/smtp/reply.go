package smtp

import (
	"fmt"
	"strconv"
	"strings"

	"example.com/svc/mta"
)

// ReplyLimits bounds a reply. A zero field means the default.
type ReplyLimits struct {
	// MaxLines is the most lines; default 100.
	MaxLines int
	// MaxKept is how many bytes of text are kept, what exceeds it is cut off; default 16 KiB.
	MaxKept int
	// MaxRead is the most bytes of text that are read; default 64 KiB.
	MaxRead int
}

func (l ReplyLimits) orDefault() ReplyLimits {
	if l.MaxLines <= 0 {
		l.MaxLines = 100
	}
	if l.MaxKept <= 0 {
		l.MaxKept = 16 << 10
	}
	if l.MaxRead <= 0 {
		l.MaxRead = 64 << 10
	}
	return l
}

// Reply is one reply of a server (RFC 5321 section 4.2). Its text may hold any byte but CRLF.
type Reply struct {
	// Code is the three-digit code, 200 to 599.
	Code int
	// Lines are the texts without code and separator; at least one.
	Lines []string
}

// maxReplyLine is the longest reply line that is kept whole; the buffer may grow to it.
const maxReplyLine = 4 << 10

// ReadReply reads one reply with all its continuation lines. All lines must have the same code. A reply that is not
// well formed or exceeds limits gives an error that wraps [ErrReply]; other errors are those of [Reader.ReadLine].
func (r *Reader) ReadReply(limits ReplyLimits) (Reply, error) {
	limits = limits.orDefault()
	var rep Reply
	var one [1]string
	rep.Lines = one[:0:1]
	kept, read := 0, 0
	for {
		line, err := r.ReadLine(min(maxReplyLine, limits.MaxRead))
		if err != nil && err != ErrLineTooLong {
			return Reply{}, err
		}
		read += len(line)
		code, more, text, ok := cutReply(line)
		switch {
		case !ok:
			return Reply{}, fmt.Errorf("%w: %q", ErrReply, clip(line))
		case rep.Code != 0 && rep.Code != code:
			return Reply{}, fmt.Errorf("%w: code %d within a reply of code %d", ErrReply, code, rep.Code)
		case len(rep.Lines) == limits.MaxLines:
			return Reply{}, fmt.Errorf("%w: over %d lines", ErrReply, limits.MaxLines)
		case read > limits.MaxRead:
			return Reply{}, fmt.Errorf("%w: over %d bytes", ErrReply, limits.MaxRead)
		}
		rep.Code = code
		text = text[:min(len(text), limits.MaxKept-kept)]
		kept += len(text)
		rep.Lines = append(rep.Lines, string(text))
		if !more {
			return rep, nil
		}
	}
}

func clip(b []byte) []byte { return b[:min(len(b), 80)] }

// cutReply takes a reply line apart. A code without any text is tolerated (RFC 5321 section 4.2).
func cutReply(line []byte) (code int, more bool, text []byte, ok bool) {
	if len(line) < 3 || line[0] < '2' || line[0] > '5' || !digit(line[1]) || !digit(line[2]) {
		return 0, false, nil, false
	}
	code = int(line[0]-'0')*100 + int(line[1]-'0')*10 + int(line[2]-'0')
	if len(line) == 3 {
		return code, false, nil, true
	}
	if line[3] != ' ' && line[3] != '-' {
		return 0, false, nil, false
	}
	return code, line[3] == '-', line[4:], true
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// Positive reports whether the code is 200 to 399.
func (r *Reply) Positive() bool { return r.Code >= 200 && r.Code < 400 }

// Response returns the reply as records show it. The enhanced code is that of the first line; it is cut from every line
// that repeats it (RFC 2034 section 4). Lines are joined by "\n".
func (r *Reply) Response(command string) mta.Response {
	res := mta.Response{Code: r.Code, Command: command}
	if len(r.Lines) == 1 {
		res.Enhanced, res.Content = r.cut(r.Lines[0])
		return res
	}
	var b strings.Builder
	for i, line := range r.Lines {
		e, text := r.cut(line)
		switch {
		case i == 0:
			res.Enhanced = e
		case e != res.Enhanced:
			text = line
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(text)
	}
	res.Content = b.String()
	return res
}

// cut splits the enhanced code off a line; one of another class than the reply is text.
func (r *Reply) cut(line string) (mta.EnhancedCode, string) {
	e, text := mta.CutEnhancedCode(line)
	if !e.IsZero() && int(e.Class) != r.Code/100 {
		return mta.EnhancedCode{}, line
	}
	return e, text
}

// Extensions are the service extensions of a server: names in capitals, with their parameters. Nil offers nothing.
type Extensions map[string]string

// ParseExtensions reads the reply to EHLO (RFC 5321 section 4.1.1.1). Its first line names the server.
func ParseExtensions(r Reply) Extensions {
	x := make(Extensions, len(r.Lines))
	for i, line := range r.Lines {
		if i == 0 {
			continue
		}
		name, params, _ := strings.Cut(strings.TrimSpace(line), " ")
		// QUIRK: "AUTH=PLAIN" is an old way to write "AUTH PLAIN".
		if a, b, ok := strings.Cut(name, "="); ok && strings.EqualFold(a, "AUTH") {
			name, params = a, strings.TrimSpace(b+" "+params)
		}
		name = strings.ToUpper(name)
		if _, dup := x[name]; name == "" || dup {
			continue
		}
		x[name] = strings.TrimSpace(params)
	}
	return x
}

// Has reports whether the server offers name, which is given in capitals.
func (x Extensions) Has(name string) bool {
	_, ok := x[name]
	return ok
}

// Size returns the largest message the server takes in bytes and true, or false when it sets no limit (RFC 1870 section
// 4: zero or no number means none is known).
func (x Extensions) Size() (int64, bool) {
	n, err := strconv.ParseInt(x["SIZE"], 10, 64)
	return n, err == nil && n > 0
}
