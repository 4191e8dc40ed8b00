package message

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"example.com/svc/mta"
	"example.com/svc/mta/mail"
	"example.com/svc/script"
)

func headerMethods() []script.Func {
	return []script.Func{
		script.Fn("append_header", "Adds a header after the existing ones.", appendHeader, "name", "value", "encode?"),
		script.Fn("prepend_header", "Adds a header before the existing ones.", prependHeader, "name", "value", "encode?"),
		script.Fn("get_first_named_header_value", "Returns the decoded value of the first header of a name, or nil.",
			firstNamed, "name"),
		script.Fn("get_all_named_header_values", "Returns the decoded values of all headers of a name.", allNamed, "name"),
		script.Fn("get_all_headers", "Returns all headers as pairs of name and decoded value.", allHeaders),
		script.Fn("remove_all_named_headers", "Removes all headers of a name.", removeNamed, "name"),
		script.Fn("remove_x_headers", "Removes the listed headers, or all that begin with X-.", removeX, "names?"),
		script.Fn("import_x_headers", "Copies the listed headers, or all that begin with X-, into metadata.", importX,
			"names?"),
	}
}

// header parses the message, loading it if needed.
func header(ctx context.Context, m *mta.Message) (*mail.Header, error) {
	data, err := m.Data(ctx)
	if err != nil {
		return nil, err
	}
	return mail.Parse(data), nil
}

// field makes the bytes of one header.
func field(name, value string, encode bool) ([]byte, error) {
	if encode {
		value = mail.EncodeValue(name, value)
	}
	if err := mail.CheckField(name, value); err != nil {
		return nil, err
	}
	return mail.AppendField(nil, name, value), nil
}

func appendHeader(ctx context.Context, m *mta.Message, name, value string, encode bool) error {
	f, err := field(name, value, encode)
	if err != nil {
		return err
	}
	h, err := header(ctx, m)
	if err != nil {
		return err
	}
	m.SetData(h.Append(f))
	return nil
}

func prependHeader(ctx context.Context, m *mta.Message, name, value string, encode bool) error {
	f, err := field(name, value, encode)
	if err != nil {
		return err
	}
	return m.Prepend(ctx, f)
}

func firstNamed(ctx context.Context, m *mta.Message, name string) (*string, error) {
	h, err := header(ctx, m)
	if err != nil {
		return nil, err
	}
	f, ok := h.First(name)
	if !ok {
		return nil, nil
	}
	v := f.Value()
	return &v, nil
}

func allNamed(ctx context.Context, m *mta.Message, name string) ([]string, error) {
	h, err := header(ctx, m)
	if err != nil {
		return nil, err
	}
	values := []string{}
	for f := range h.Named(name) {
		values = append(values, f.Value())
	}
	return values, nil
}

func allHeaders(ctx context.Context, m *mta.Message) ([][]string, error) {
	h, err := header(ctx, m)
	if err != nil {
		return nil, err
	}
	pairs := make([][]string, 0, h.Len())
	for f := range h.All() {
		pairs = append(pairs, []string{f.Name(), f.Value()})
	}
	return pairs, nil
}

func removeNamed(ctx context.Context, m *mta.Message, name string) error {
	return remove(ctx, m, func(f mail.Field) bool { return f.Is(name) })
}

func removeX(ctx context.Context, m *mta.Message, names []string) error {
	return remove(ctx, m, chosen(names))
}

func remove(ctx context.Context, m *mta.Message, drop func(mail.Field) bool) error {
	h, err := header(ctx, m)
	if err != nil {
		return err
	}
	if out, n := h.Remove(drop); n > 0 {
		m.SetData(out)
	}
	return nil
}

// chosen selects the listed headers, or those that begin with X- when nothing was listed.
func chosen(names []string) func(mail.Field) bool {
	if names == nil {
		return func(f mail.Field) bool {
			name := f.Name()
			return len(name) > 2 && strings.EqualFold(name[:2], "X-")
		}
	}
	return func(f mail.Field) bool { return slices.ContainsFunc(names, f.Is) }
}

// maxImport bounds the headers that become metadata: a peer chooses how many there are.
const maxImport = 1000

// importX sets the metadata that the chosen headers name; of several with one name the last counts. Bytes that are not
// UTF-8 become U+FFFD. A message with over maxImport such headers is an error and changes nothing.
func importX(ctx context.Context, m *mta.Message, names []string) error {
	h, err := header(ctx, m)
	if err != nil {
		return err
	}
	pick := chosen(names)
	var picked []mail.Field
	for f := range h.All() {
		if pick(f) {
			picked = append(picked, f)
		}
	}
	if len(picked) > maxImport {
		return fmt.Errorf("import_x_headers: the message has over %d such headers", maxImport)
	}
	for _, f := range picked {
		key := strings.ReplaceAll(strings.ToLower(f.Name()), "-", "_")
		if err := m.SetMeta(ctx, key, strings.ToValidUTF8(f.Value(), "\uFFFD")); err != nil {
			return err
		}
	}
	return nil
}
