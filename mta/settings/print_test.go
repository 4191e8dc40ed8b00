package settings_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"example.com/svc/mta/settings"
)

func TestPrint(t *testing.T) {
	m := settings.Map{
		{Key: "big", Value: uint64(1 << 63)}, {Key: "neg", Value: int64(-1)}, {Key: "nan", Value: math.NaN()}, {Key: "inf", Value: math.Inf(-1)},
		{Key: "exp", Value: 1e300}, {Key: "whole", Value: 3.0}, {Key: "nothing", Value: nil},
		{Key: "at", Value: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		{Key: "mixed", Value: []any{settings.Map{{Key: "a b", Value: "<&>"}, {Key: "c", Value: true}}, nil, int64(1)}},
		{Key: "empty", Value: []any{}},
		{Key: "quote", Value: "\" \\ \n \r \t \x01 \x7f é \xff"},
		{Key: "10.0.0.0/8", Value: settings.Map{{Key: "x", Value: settings.Map{}}}},
	}
	want := "big = 9223372036854775808\nneg = -1\nnan = nan\ninf = -inf\nexp = 1e+300\nwhole = 3.0\nat = 2026-01-02T03:04:05Z\n" +
		"mixed = [{ \"a b\" = \"<&>\", c = true }, 1]\nempty = []\n" +
		`quote = "\" \\ \n \r \t \u0001 \u007F é ` + "\uFFFD\"\n\n[\"10.0.0.0/8\"]\n\n[\"10.0.0.0/8\".x]\n"
	if got := string(m.TOML()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := settings.ParseTOML("printed", m[1:].TOML()); err != nil {
		t.Error(err)
	}
	got, err := json.Marshal(m)
	wantJSON := `{"big":9223372036854775808,"neg":-1,"nan":null,"inf":null,"exp":1e+300,"whole":3,"nothing":null,"at":"2026-01-02T03:04:05Z",` +
		`"mixed":[{"a b":"\u003c\u0026\u003e","c":true},null,1],"empty":[],"quote":"\" \\ \n \r \t \u0001 ` + "\x7f" + ` é \ufffd","10.0.0.0/8":{"x":{}}}`
	if err != nil || string(got) != wantJSON {
		t.Errorf("%v\ngot  %s\nwant %s", err, got, wantJSON)
	}
}

func TestKeySourcePrints(t *testing.T) {
	for want, give := range map[string]any{
		"key = \"/etc/k\"\n": "/etc/k",
		"\n[key]\nvault_address = \"https://v\"\nvault_token = \"********\"\nvault_mount = \"m\"\nvault_path = \"p\"\nvault_key = \"key\"\n": tree{
			"vault_mount": "m", "vault_path": "p", "vault_token": "secret", "vault_address": "https://v"},
		"\n[key]\nevent_name = \"e\"\nevent_args = [\"a\"]\n": tree{"event_name": "e", "event_args": []any{"a"}},
	} {
		var c struct {
			Key *settings.KeySource `set:"key"`
		}
		if err := settings.Decode("x", tree{"key": give}, &c); err != nil {
			t.Fatal(err)
		}
		if got := string(settings.Encode(c).TOML()); got != want && "\n"+got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}
