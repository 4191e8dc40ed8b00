package svc_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/svc/mta"
	"example.com/svc/mta/server"
	"example.com/svc/script"
	"example.com/svc/scriptmods"
	"example.com/svc/spool/memory"
)

func TestRejections(t *testing.T) {
	for body, want := range map[string]mta.Rejection{
		`svc.reject(550, '5.7.1 no')`: {Code: 550, Text: "5.7.1 no", Mode: mta.If421},
		`local ok, err = pcall(svc.reject, 451, 'later') eq(ok, false) eq(tostring(err), '451 later') error(err)`: {
			Code: 451, Text: "later", Mode: mta.If421},
		`svc.disconnect(421, 'bye')`:                  {Code: 421, Text: "bye", Mode: mta.ForceDisconnect},
		`svc.disconnect(550, 'bye', 'FollowWith421')`: {Code: 550, Text: "bye", Mode: mta.FollowWith421},
	} {
		var got *mta.Rejection
		if err := run(t, body); !errors.As(err, &got) || *got != want {
			t.Errorf("%s: %v", body, err)
		}
	}
	wantError(t, run(t, `svc.reject(250, 'fine')`), "policy.lua:2", "250")
	wantError(t, run(t, `svc.disconnect(550, 'x', 'Never')`), "policy.lua:2", "Never", "FollowWith421")
}

func TestLog(t *testing.T) {
	f := load(t, handler(`svc.log_info('a', 1, 2.5, true, nil, {x = {1, 2}}, print)
svc.log_warn('w') svc.log_error('e') svc.log_debug(a:recipient(), a)`))
	store := mta.NewStore(memory.New(), memory.New(), nil, nil)
	msg := store.New(mta.Envelope{Recipients: []mta.Address{{Local: "u", Domain: "d.example"}}}, []byte("x"))
	if err := f.call(t, msg); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(f.log.String()), "\n")
	for i, want := range []struct{ level, text string }{ // TestPlaces is about what stands before the text
		{"INFO", `a 1 2.5 true nil {\"x\":[1,2]} function`}, {"WARN", "w"}, {"ERROR", "e"},
		{"DEBUG", "u@d.example message " + msg.ID().String()},
	} {
		if len(lines) != 4 {
			t.Fatalf("%d lines:\n%s", len(lines), f.log)
		}
		if !strings.Contains(lines[i], "level="+want.level+" ") || !strings.Contains(lines[i], want.text) ||
			!strings.HasSuffix(lines[i], " target=lua") {
			t.Errorf("line %q, want %v", lines[i], want)
		}
	}
}

func TestSerde(t *testing.T) {
	dir := t.TempDir()
	j, tm, bad := filepath.Join(dir, "x.json"), filepath.Join(dir, "x.toml"), filepath.Join(dir, "bad.json")
	for name, text := range map[string]string{j: `{"a": [1, null, 2.5]}`, tm: "a = 1\n[t]\nb = 'x'\n", bad: "{\n\"a\": }"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, body := range map[string]string{
		"encode":      `eq(svc.json_encode({a = {1, 2, '<x>'}, b = true}), '{"a":[1,2,"<x>"],"b":true}') eq(svc.json_encode('x'), '"x"')`,
		"pretty":      `eq(svc.json_encode_pretty({a = 1}), '{\n  "a": 1\n}')`,
		"parse":       `local v = svc.json_parse('{"a":[1,2.5,"x"],"n":null}') eq(v.a[2], 2.5) eq(v.n, nil) eq(#v.a, 3)`,
		"load":        `eq(svc.json_load(a).a[3], 2.5)`,
		"toml parse":  `eq(svc.toml_parse('a = 1\n[t]\nb = "x"').t.b, 'x')`,
		"toml load":   `eq(svc.toml_load(b).t.b, 'x')`,
		"toml encode": `eq(svc.toml_encode({a = 1, t = {b = 'x'}}), 'a = 1\n\n[t]\nb = "x"\n') eq(svc.toml_parse(svc.toml_encode_pretty({l = {1, 2}})).l[2], 2)`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t, body, j, tm); err != nil {
				t.Error(err)
			}
		})
	}
	for body, want := range map[string]string{
		`svc.json_encode(print)`: "JSON", `svc.json_encode({0/0})`: "JSON", `svc.json_parse('{')`: "too early",
		`svc.json_load(a)`: "bad.json:2", `svc.toml_parse('a = ')`: "invalid TOML", `svc.json_load('/nonexistent/x')`: "no such file",
		`svc.json_load('/')`: "not a regular file", `svc.toml_encode({1})`: "table with names", `svc.toml_load(a)`: "invalid TOML",
	} {
		wantError(t, run(t, body, bad), "policy.lua:2", want)
	}
}

func TestProcess(t *testing.T) {
	if err := run(t, `eq(svc.version, '2026.01.01-test') eq(svc.available_parallelism(), 3)`); err != nil {
		t.Error(err)
	}
	f := load(t, handler(`svc.bump_config_epoch()`))
	srv, err := f.b.Build()
	if err != nil {
		t.Fatal(err)
	}
	before := srv.Epoch().Current()
	if err := f.call(t); err != nil {
		t.Fatal(err)
	}
	if got := srv.Epoch().Current(); got != before+1 {
		t.Errorf("epoch %d after %d", got, before)
	}
}

// Every declaration has a text that is one sentence, and named arguments.
func TestDocs(t *testing.T) {
	var docs []script.Doc
	for _, m := range scriptmods.All(server.NewBuilder(server.Config{}), scriptmods.Options{}) {
		docs = append(docs, m.Describe()...)
	}
	if len(docs) < 60 {
		t.Fatalf("%d declarations", len(docs))
	}
	for _, d := range docs {
		if !strings.HasSuffix(d.Text, ".") || strings.Contains(d.Signature, "arg1") || strings.Contains(d.Signature, "?)") {
			t.Errorf("%s: %q, %q", d.Name, d.Signature, d.Text)
		}
	}
}
