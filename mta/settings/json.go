package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// ParseJSON reads one JSON document (RFC 8259) into a tree whose values carry their place in the file called name.
// A key given twice in an object, invalid UTF-8, nesting beyond [MaxDepth] and anything after the value are errors.
// Numbers become int64 or uint64 when they are whole and fit, float64 otherwise.
func ParseJSON(name string, data []byte) (tree any, err error) {
	p := &jsonParser{name: name, data: data, line: 1}
	if !utf8.Valid(data) {
		return nil, p.faultAt(invalidUTF8At(data), "invalid UTF-8")
	}
	p.dec = json.NewDecoder(bytes.NewReader(data))
	p.dec.UseNumber()
	tok, err := p.next()
	if err != nil {
		return nil, err
	}
	tree, err = p.value(tok, 0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		p.advance()
		return nil, p.fault("more text after the value")
	}
	return tree, nil
}

type jsonParser struct {
	name string
	data []byte
	dec  *json.Decoder
	line int
	seen int // lines are counted up to this offset
}

func (p *jsonParser) advance() {
	end := min(int(p.dec.InputOffset()), len(p.data))
	if end > p.seen {
		p.line += bytes.Count(p.data[p.seen:end], []byte{'\n'})
		p.seen = end
	}
}

func (p *jsonParser) next() (json.Token, error) {
	tok, err := p.dec.Token()
	p.advance()
	if err == nil {
		return tok, nil
	}
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, p.faultAt(len(p.data), "the document ends too early")
	case errors.As(err, &syntax):
		return nil, p.faultAt(max(p.seen, int(syntax.Offset)), syntax.Error())
	}
	return nil, p.fault(err.Error())
}

func (p *jsonParser) fault(msg string) error {
	return Errors{{What: p.name, Place: Place{p.name, p.line}, Msg: "invalid JSON: " + msg}}
}

func (p *jsonParser) faultAt(offset int, msg string) error {
	offset = min(offset, len(p.data))
	p.line = 1 + bytes.Count(p.data[:offset], []byte{'\n'})
	return p.fault(msg)
}

func (p *jsonParser) value(tok json.Token, depth int) (any, error) {
	if depth > MaxDepth {
		return nil, p.fault(fmt.Sprintf("nested more than %d levels deep", MaxDepth))
	}
	place := Place{p.name, p.line}
	var v any
	var err error
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			v, err = p.object(depth)
		} else {
			v, err = p.array(depth)
		}
	case json.Number:
		v, err = p.number(string(tok))
	default:
		v = tok
	}
	if err != nil {
		return nil, err
	}
	return &Node{Value: v, Place: place}, nil
}

func (p *jsonParser) object(depth int) (any, error) {
	m := map[string]any{}
	for p.dec.More() {
		tok, err := p.next()
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return nil, p.fault("a key must be a string")
		}
		place := Place{p.name, p.line}
		if _, twice := m[key]; twice {
			return nil, p.fault(fmt.Sprintf("key %q is given twice", clip(key)))
		}
		if tok, err = p.next(); err != nil {
			return nil, err
		}
		v, err := p.value(tok, depth+1)
		if err != nil {
			return nil, err
		}
		v.(*Node).Place = place
		m[key] = v
	}
	_, err := p.next()
	return m, err
}

func (p *jsonParser) array(depth int) (any, error) {
	l := []any{}
	for p.dec.More() {
		tok, err := p.next()
		if err != nil {
			return nil, err
		}
		v, err := p.value(tok, depth+1)
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	_, err := p.next()
	return l, err
}

func (p *jsonParser) number(text string) (any, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, p.fault(fmt.Sprintf("number %s is out of range", clip(text)))
	}
	return f, nil
}

func invalidUTF8At(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}
