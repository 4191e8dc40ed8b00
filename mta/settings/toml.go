package settings

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// ParseTOML reads a TOML 1.0 document into a tree whose values carry their place in the file called name.
// A key given twice and nesting beyond [MaxDepth] are errors. Times become time.Time; local dates and times
// become strings.
func ParseTOML(name string, data []byte) (tree any, err error) {
	if uint64(len(data)) > math.MaxUint32 {
		return nil, tomlFault(name, 0, "the document is too long")
	}
	p := &tomlPlaces{name: name, data: data}
	p.findLines()
	if err := p.collect(); err != nil {
		return nil, err
	}
	var m map[string]any
	if err := toml.Unmarshal(data, &m); err != nil {
		line := 0
		var de *toml.DecodeError
		if errors.As(err, &de) {
			line, _ = de.Position()
		}
		return nil, tomlFault(name, line, strings.TrimPrefix(err.Error(), "toml: "))
	}
	return p.wrap(m, p.root, Place{name, 1}), nil
}

func tomlFault(name string, line int, msg string) error {
	return Errors{{What: name, Place: Place{name, line}, Msg: "invalid TOML: " + msg}}
}

// tomlPlaces knows the line of every key of a document. The parser of go-toml gives values; its syntax walker gives
// places; the two are joined by path.
type tomlPlaces struct {
	name  string
	data  []byte
	lines []uint32 // offsets of line ends
	root  *tomlPlace
}

// tomlPlace is the place of a table, array or value and of what is in it.
type tomlPlace struct {
	line  int
	keys  map[string]*tomlPlace
	items []*tomlPlace
}

func (p *tomlPlace) key(k string, line int) *tomlPlace {
	c := p.keys[k]
	if c == nil {
		c = &tomlPlace{line: line}
		if p.keys == nil {
			p.keys = map[string]*tomlPlace{}
		}
		p.keys[k] = c
	}
	return c
}

// last is the table that a header means: of an array of tables, its newest element.
func (p *tomlPlace) last() *tomlPlace {
	if n := len(p.items); n > 0 {
		return p.items[n-1]
	}
	return p
}

func (t *tomlPlaces) findLines() {
	for i, c := range t.data {
		if c == '\n' {
			t.lines = append(t.lines, uint32(i))
		}
	}
}

func (t *tomlPlaces) line(r unstable.Range) int {
	return 1 + sort.Search(len(t.lines), func(i int) bool { return t.lines[i] >= r.Offset })
}

func (t *tomlPlaces) collect() error {
	t.root = &tomlPlace{line: 1}
	at, depth := t.root, 0
	var p unstable.Parser
	p.Reset(t.data)
	for p.NextExpression() {
		e := p.Expression()
		var err error
		switch e.Kind {
		case unstable.Table:
			at, depth, err = t.walk(t.root, e.Key(), 0)
		case unstable.ArrayTable:
			at, depth, err = t.walk(t.root, e.Key(), 0)
			if err == nil {
				item := &tomlPlace{line: t.keyLine(e)}
				at.items = append(at.items, item)
				at, depth = item, depth+1
			}
		case unstable.KeyValue:
			err = t.keyValue(at, e, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil // a fault of syntax is told by the parser of the values
}

// keyLine is the line of a header.
func (t *tomlPlaces) keyLine(e *unstable.Node) int {
	it := e.Key()
	if !it.Next() {
		return 0
	}
	return t.line(it.Node().Raw)
}

func (t *tomlPlaces) walk(at *tomlPlace, it unstable.Iterator, depth int) (*tomlPlace, int, error) {
	for it.Next() {
		n := it.Node()
		line := t.line(n.Raw)
		if depth++; depth > MaxDepth {
			return nil, 0, tomlFault(t.name, line, fmt.Sprintf("nested more than %d levels deep", MaxDepth))
		}
		at = at.key(string(n.Data), line)
		if !it.IsLast() {
			at = at.last()
		}
	}
	return at, depth, nil
}

func (t *tomlPlaces) keyValue(at *tomlPlace, e *unstable.Node, depth int) error {
	at, depth, err := t.walk(at.last(), e.Key(), depth)
	if err != nil {
		return err
	}
	return t.value(at, e.Value(), depth)
}

func (t *tomlPlaces) value(at *tomlPlace, v *unstable.Node, depth int) error {
	if depth > MaxDepth {
		return tomlFault(t.name, at.line, fmt.Sprintf("nested more than %d levels deep", MaxDepth))
	}
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			if it.Node().Kind != unstable.KeyValue {
				continue
			}
			if err := t.keyValue(at, it.Node(), depth); err != nil {
				return err
			}
		}
	case unstable.Array:
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.Comment {
				continue
			}
			item := &tomlPlace{line: at.line}
			if r := it.Node().Raw; r.Length > 0 {
				item.line = t.line(r)
			}
			at.items = append(at.items, item)
			if err := t.value(item, it.Node(), depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrap turns the values of go-toml into a tree.
func (t *tomlPlaces) wrap(v any, at *tomlPlace, place Place) any {
	if at != nil && at.line > 0 {
		place.Line = at.line
	}
	switch x := v.(type) {
	case map[string]any:
		for k, e := range x {
			var c *tomlPlace
			if at != nil {
				c = at.keys[k]
			}
			x[k] = t.wrap(e, c, place)
		}
	case []any:
		for i, e := range x {
			var c *tomlPlace
			if at != nil && i < len(at.items) {
				c = at.items[i]
			}
			x[i] = t.wrap(e, c, place)
		}
	case []map[string]any:
		l := make([]any, len(x))
		for i := range x {
			l[i] = x[i]
		}
		return t.wrap(l, at, place)
	case toml.LocalDate:
		v = x.String()
	case toml.LocalTime:
		v = x.String()
	case toml.LocalDateTime:
		v = x.String()
	case time.Time, string, bool, int64, float64:
	}
	return &Node{Value: v, Place: place}
}
