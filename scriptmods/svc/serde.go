package svc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"example.com/svc/mta/settings"
	"example.com/svc/script"
)

// maxDocument bounds files that are read as JSON or TOML.
const maxDocument = 64 << 20

func serdeFuncs() []script.Func {
	return []script.Func{
		script.Fn("json_encode", "Writes a value as JSON.",
			func(value any) (string, error) { return encodeJSON(value, "") }, "value"),
		script.Fn("json_encode_pretty", "Writes a value as JSON with indented lines.",
			func(value any) (string, error) { return encodeJSON(value, "  ") }, "value"),
		script.Fn("json_parse", "Reads a JSON document.",
			func(text []byte) (any, error) { return parse(settings.ParseJSON, "json_parse", text) }, "text"),
		script.Fn("json_load", "Reads a JSON file.",
			func(filename string) (any, error) { return load(settings.ParseJSON, filename) }, "filename"),
		script.Fn("toml_encode", "Writes a table as TOML.", encodeTOML, "value"),
		script.Fn("toml_encode_pretty", "Writes a table as TOML, with tables below headers.", encodeTOML, "value"),
		script.Fn("toml_parse", "Reads a TOML document.",
			func(text []byte) (any, error) { return parse(settings.ParseTOML, "toml_parse", text) }, "text"),
		script.Fn("toml_load", "Reads a TOML file.",
			func(filename string) (any, error) { return load(settings.ParseTOML, filename) }, "filename"),
	}
}

// encodeJSON writes a value of a policy; what JSON cannot say is an error.
func encodeJSON(v any, indent string) (string, error) {
	var j settings.JSON
	if err := j.UnmarshalSetting(v); err != nil {
		return "", err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(j.Value); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte{'\n'})), nil
}

// encodeTOML writes a table; a nil in it is left out.
func encodeTOML(v any) (string, error) {
	var j settings.JSON
	if err := j.UnmarshalSetting(v); err != nil {
		return "", err
	}
	m, ok := j.MarshalSetting().(settings.Map)
	if !ok {
		return "", errors.New("a TOML document is a table with names")
	}
	return string(m.TOML()), nil
}

type parser = func(name string, data []byte) (any, error)

func parse(p parser, name string, data []byte) (any, error) {
	tree, err := p(name, data)
	if err != nil {
		return nil, err
	}
	return settings.Plain(tree), nil
}

// load reads a regular file of bounded size; others could block for ever.
func load(p parser, name string) (any, error) {
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("%s is over %d bytes", name, maxDocument)
	}
	return parse(p, name, data)
}
