package settings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta/settings"
)

func TestJSON(t *testing.T) {
	tests := []struct{ give, want string }{
		{"{\n \"n\": 1,\n \"hosts\": [\n  {\"name\": 5}\n ],\n \"lst\": 1}",
			"a.json:4: setting \"hosts[1].name\": expected a string, got a number 5\na.json:6: unknown setting \"lst\", did you mean \"list\"?"},
		{"{\"n\": 1,\n\"n\": 2}", `a.json:2: invalid JSON: key "n" is given twice`},
		{"{\"n\": 1,\n}", `a.json:2: invalid JSON: invalid character '}'`},
		{"{\"n\":\n 1", `a.json:2: invalid JSON: the document ends too early`},
		{"", `a.json:1: invalid JSON: the document ends too early`},
		{"{}\nx", `a.json:2: invalid JSON: more text after the value`},
		{"{\"s\":\n\"\xff\"}", `a.json:2: invalid JSON: invalid UTF-8`},
		{"{\"f\": 1e999}", `a.json:1: invalid JSON: number 1e999 is out of range`},
		{strings.Repeat("[", 100000), `a.json:1: invalid JSON: nested more than 64 levels deep`},
		{`{"n": 18446744073709551615}`, `a.json:1: setting "n": 18446744073709551615 is too large`},
		{`{"size": 18446744073709551615}`, `a.json:1: setting "size": invalid size 18446744073709551615: too large`},
		{`{"n": 1.0, "size": 9223372036854775807}`, "<nil>"},
		{`{"ptr": null, "any": {"a": [1, null]}}`, "<nil>"},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			var c kitchen
			if got := fmt.Sprint(settings.DecodeJSON("a.json", []byte(tt.give), &c)); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %.300s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestTOML(t *testing.T) {
	tests := []struct{ give, want string }{
		{"n = 1\n\n[[hosts]]\nname = \"a\"\n\n[[hosts]]\nname = 5\n[inner]\n\"nmae\" = 'x'\n",
			"a.toml:7: setting \"hosts[2].name\": expected a string, got an number"},
		{"n = 1\nn = 2\n", "a.toml:2: invalid TOML: key n"},
		{"n = \n", "a.toml:1: invalid TOML: "},
		{"inner.name = 'a'\ninner.wieght = 1\n", `a.toml:2: unknown setting "inner.wieght", did you mean "weight"?`},
		{"map = { x = 1, y = 'z' }\n", `a.toml:1: setting "map.y": expected an int, got a string "z"`},
		{"list = [\n 'a',\n 5,\n]\n", `a.toml:3: setting "list[2]": expected a string, got a number 5`},
		{"# c\n[[hosts]]\nweight = 2\n", `a.toml:2: setting "hosts[1].name" is required`},
		{"any = " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), "a.toml:1: invalid TOML: nested more than 64 levels deep"},
		{strings.Repeat("a.", 1000) + "b = 1", "a.toml:1: invalid TOML: nested more than 64 levels deep"},
		{"[" + strings.Repeat("a.", 1000) + "b]", "a.toml:1: invalid TOML: nested more than 64 levels deep"},
		{"wait = '5m'\nflag = false\nany = 1979-05-27\n", "<nil>"},
	}
	tests[0].want = "a.toml:7: setting \"hosts[2].name\": expected a string, got a number 5\n" +
		"a.toml:8: setting \"inner.name\" is required\na.toml:9: unknown setting \"inner.nmae\", did you mean \"name\"?"
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			var c kitchen
			if got := fmt.Sprint(settings.DecodeTOML("a.toml", []byte(tt.give), &c)); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got  %.300s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	c := settings.New(func(k *kitchen) {
		k.Hosts, k.S, k.Wait = []host{{"a", 1}, {"b", 2}}, "tab\t\"q\"", 172800*time.Millisecond
		k.Key = settings.KeySource{Data: []byte("secret")}
		k.JSON = settings.JSON{Value: tree{"b": 1.0, "a": "x"}}
	})
	got := string(settings.Encode(&c).TOML())
	want := `flag = true
n = 1024
u = 0
f = 0.5
s = "tab\t\"q\""
mode = "Required"
size = 128000
free = "10%"
relay = ["127.0.0.1", "::1"]
listen = "[::1]:25"
list = ["a"]
wait = "2m 52s 800ms"

[key]
key_data = "********"

[json]
a = "x"
b = 1.0

[[hosts]]
name = "a"
weight = 1

[[hosts]]
name = "b"
weight = 2

[map]
x = 1

[inner]
name = ""
weight = 1
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", c.Key, c.Key, c.Key), "secret") {
		t.Error("the secret is printed")
	}
}

// What Encode prints is read back as the same value, through JSON and through TOML.
func TestRoundTrip(t *testing.T) {
	c := settings.New(func(k *kitchen) {
		k.N, k.S, k.Mode, k.Wait = -5, "é\x00\x7f\n", "Disabled", 90*time.Minute
		k.Ptr = &host{"ptr", 4}
		k.Merged = merged{"a b": 1, "": 2}
		k.Inner.Name = "in"
	})
	var viaTOML, viaJSON kitchen
	if err := settings.DecodeTOML("t", settings.Encode(c).TOML(), &viaTOML); err != nil {
		t.Fatal(err)
	}
	data, err := settings.Encode(c).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := settings.DecodeJSON("j", data, &viaJSON); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%#v", settings.Encode(c))
	for _, got := range []kitchen{viaTOML, viaJSON} {
		if s := fmt.Sprintf("%#v", settings.Encode(got)); s != want {
			t.Errorf("got  %s\nwant %s", s, want)
		}
	}
}
