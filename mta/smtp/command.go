package smtp

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"example.com/svc/mta"
)

// Verb is the name of a command.
type Verb uint8

// Verbs. Unknown stands for every other word.
const (
	Unknown Verb = iota
	EHLO
	HELO
	LHLO
	MAIL
	RCPT
	DATA
	BDAT
	RSET
	NOOP
	QUIT
	VRFY
	EXPN
	HELP
	ETRN
	AUTH
	STARTTLS
	XCLIENT
)

var verbNames = [...]string{"", "EHLO", "HELO", "LHLO", "MAIL", "RCPT", "DATA", "BDAT", "RSET", "NOOP", "QUIT", "VRFY",
	"EXPN", "HELP", "ETRN", "AUTH", "STARTTLS", "XCLIENT"}

// String returns the verb in capitals, "" for Unknown.
func (v Verb) String() string {
	if int(v) < len(verbNames) {
		return verbNames[v]
	}
	return ""
}

// Command is one command line of a client.
type Command struct {
	Verb Verb
	// Arg is what follows the verb, without spaces around it; for MAIL and RCPT it is empty.
	Arg string
	// Path is the mailbox of MAIL and RCPT.
	Path mta.Address
	// Params are the parameters of MAIL and RCPT in their order.
	Params []Param
}

// Param is an ESMTP parameter (RFC 5321 section 4.1.2).
type Param struct {
	// Name is in capitals.
	Name string
	// Value is what follows "="; it is empty without one.
	Value string
	// HasValue says that there was a "=".
	HasValue bool
}

// Faults of a command line, wrapped by the errors of [ParseCommand].
var (
	// ErrCharacters: NUL or another control character, or not UTF-8. Answer 501 5.5.2.
	ErrCharacters = errors.New("invalid characters")
	// ErrEmpty: no verb. Answer 500 5.5.2.
	ErrEmpty = errors.New("no command")
	// ErrArgument: the argument of this verb is missing or malformed, or it takes none. Answer 501 5.5.4.
	ErrArgument = errors.New("bad argument")
	// ErrPath: the path of MAIL or RCPT is malformed. Answer 501 5.1.7 to MAIL and 501 5.1.3 to RCPT (flows SM-16).
	ErrPath = errors.New("bad path")
	// ErrParams: the parameters of MAIL or RCPT are malformed. Answer 501 5.5.4.
	ErrParams = errors.New("bad parameter")
)

// ParseCommand reads a command line without its CRLF. With an error the verb is still set when it could be read. A verb
// that is not known is no error. The result shares no memory with line.
func ParseCommand(line []byte) (Command, error) {
	if !clean(line) {
		return Command{Verb: leadingVerb(line)}, ErrCharacters
	}
	verb, rest := cutVerb(line)
	if verb == Unknown && len(rest) == len(line) {
		return Command{}, ErrEmpty
	}
	c := Command{Verb: verb}
	arg := trim(rest)
	if len(arg) == 0 && takesNone(verb) {
		return c, nil
	}
	switch verb {
	case MAIL:
		return parsePathCommand(c, string(arg), "FROM:")
	case RCPT:
		return parsePathCommand(c, string(arg), "TO:")
	case EHLO, HELO, LHLO:
		c.Arg = string(arg)
		if !validHello(c.Arg) {
			return c, fmt.Errorf("%w: domain or address literal required", ErrArgument)
		}
		return c, nil
	case DATA, RSET, QUIT, STARTTLS:
		return c, fmt.Errorf("%w: none expected", ErrArgument)
	case AUTH, VRFY, EXPN, ETRN, XCLIENT, BDAT:
		if len(arg) == 0 {
			return c, fmt.Errorf("%w: missing", ErrArgument)
		}
	}
	c.Arg = string(arg)
	return c, nil
}

// takesNone reports whether the verb may stand alone (RFC 5321 section 4.1.1).
func takesNone(v Verb) bool {
	switch v {
	case DATA, RSET, QUIT, STARTTLS, NOOP, HELP, Unknown:
		return true
	}
	return false
}

// clean reports whether line is UTF-8 (RFC 6531 section 3.1) without control characters.
func clean(line []byte) bool {
	ascii := true
	for _, c := range line {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return ascii || utf8.Valid(line)
}

func leadingVerb(line []byte) Verb {
	v, _ := cutVerb(line)
	return v
}

const maxVerb = 8

// cutVerb splits the verb off. An empty line, or one that begins with a space, has none and is returned whole.
func cutVerb(line []byte) (Verb, []byte) {
	n := 0
	for n < len(line) && line[n] != ' ' && line[n] != '\t' {
		n++
	}
	if n > maxVerb {
		return Unknown, line[n:]
	}
	var up [maxVerb]byte
	for i, c := range line[:n] {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		up[i] = c
	}
	return lookupVerb(string(up[:n])), line[n:]
}

func lookupVerb(s string) Verb {
	for i := 1; i < len(verbNames); i++ {
		if verbNames[i] == s {
			return Verb(i)
		}
	}
	return Unknown
}

func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// parsePathCommand reads "FROM:<path> params". A space after the colon, though never right, is common and tolerated.
func parsePathCommand(c Command, arg, word string) (Command, error) {
	if len(arg) < len(word) || !strings.EqualFold(arg[:len(word)], word) {
		return c, fmt.Errorf("%w: %q expected", ErrArgument, word)
	}
	path, rest, err := cutPath(strings.TrimLeft(arg[len(word):], " \t"))
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrPath, err)
	}
	if c.Path, err = mta.ParseAddress(path); err != nil {
		return c, fmt.Errorf("%w: %w", ErrPath, err)
	}
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return c, fmt.Errorf("%w: text after the path", ErrPath)
	}
	c.Params, err = parseParams(rest)
	return c, err
}

func parseParams(s string) ([]Param, error) {
	s = strings.TrimLeft(s, " \t")
	if s == "" {
		return nil, nil
	}
	var ps []Param
	for word := range strings.FieldsSeq(s) {
		name, value, has := strings.Cut(word, "=")
		if !validKeyword(name) || has && (value == "" || strings.Contains(value, "=")) {
			return nil, fmt.Errorf("%w: %q", ErrParams, clip([]byte(word)))
		}
		ps = append(ps, Param{Name: strings.ToUpper(name), Value: value, HasValue: has})
	}
	return ps, nil
}

// validKeyword checks an esmtp-keyword (RFC 5321 section 4.1.2).
func validKeyword(s string) bool {
	if s == "" || s[0] == '-' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !alnum(s[i]) && s[i] != '-' {
			return false
		}
	}
	return true
}

func alnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// validHello checks the argument of EHLO. Host names in the wild are looser than RFC 5321 section 4.1.2: any letters,
// digits, dots, hyphens and underscores pass, and so does UTF-8. A literal must hold an address.
func validHello(s string) bool {
	if s == "" || len(s) > 255 {
		return false
	}
	if s[0] == '[' {
		_, ok := mta.Address{Domain: s}.Literal()
		return ok
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < utf8.RuneSelf && !alnum(c) && c != '.' && c != '-' && c != '_' && c != ':' {
			return false
		}
	}
	return true
}
