package smtp

import (
	"errors"
	"strings"

	"example.com/svc/mta"
)

var (
	errNoBrackets = errors.New("angle brackets required")
	errRoute      = errors.New("malformed source route")
)

// cutPath splits a path in angle brackets off s and returns what is inside, a source route removed (RFC 5321 appendix C:
// it must be accepted and should be ignored).
func cutPath(s string) (mailbox, rest string, err error) {
	if s == "" || s[0] != '<' {
		return "", "", errNoBrackets
	}
	end := closingBracket(s)
	if end < 0 {
		return "", "", errNoBrackets
	}
	mailbox, rest = s[1:end], s[end+1:]
	if strings.HasPrefix(mailbox, "@") {
		route, after, ok := strings.Cut(mailbox, ":")
		if !ok || !validRoute(route) || after == "" {
			return "", "", errRoute
		}
		mailbox = after
	}
	return mailbox, rest, nil
}

// closingBracket finds the ">" that is not inside a quoted string.
func closingBracket(s string) int {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '>' && !quoted:
			return i
		}
	}
	return -1
}

func validRoute(route string) bool {
	for hop := range strings.SplitSeq(route, ",") {
		if len(hop) < 2 || hop[0] != '@' || !validHello(hop[1:]) {
			return false
		}
	}
	return true
}

// AppendPath appends a in angle brackets, quoted where needed; the null address is "<>". It writes what it is given: an
// address that did not come from mta.ParseAddress may hold line breaks, which [Writer.WriteLine] refuses.
func AppendPath(dst []byte, a mta.Address) []byte {
	dst = append(dst, '<')
	if plain(a.Local) {
		dst = append(dst, a.Local...)
		if a.Domain != "" {
			dst = append(append(dst, '@'), a.Domain...)
		}
	} else {
		dst = append(dst, a.String()...)
	}
	return append(dst, '>')
}

// plain reports whether a local part consists of letters, digits and single inner dots, hyphens, underscores and plus
// signs, so that it needs no quotes.
func plain(s string) bool {
	if s == "" || s[0] == '.' || s[len(s)-1] == '.' {
		return false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case alnum(c), c == '-', c == '_', c == '+':
		case c == '.' && s[i-1] != '.':
		default:
			return false
		}
	}
	return true
}
