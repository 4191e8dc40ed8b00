package settings_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/svc/mta/settings"
)

type mode string

func (mode) Values() []string { return []string{"Opportunistic", "Required", "Disabled"} }

type retry struct {
	Interval settings.Duration  `set:"retry_interval" default:"20m"`
	MaxAge   settings.Duration  `set:"max_age" default:"7d"`
	Max      *settings.Duration `set:"max_retry_interval"`
}

type queueConfig struct {
	Pool string `set:"egress_pool" default:"unspecified"`
	retry
	Note string // not a setting
}

func (queueConfig) Refused() map[string]string {
	return map[string]string{"enable_dane": "no validating resolver"}
}

type host struct {
	Name   string `set:"name" required:"true"`
	Weight int8   `set:"weight" default:"1"`
}

type kitchen struct {
	Flag   bool               `set:"flag" default:"true"`
	N      int                `set:"n" default:"1024"`
	U      uint8              `set:"u"`
	F      float64            `set:"f" default:"0.5"`
	S      string             `set:"s"`
	Mode   mode               `set:"mode" default:"Required"`
	Size   settings.Size      `set:"size" default:"128000"`
	Free   settings.FreeSpace `set:"free" default:"10%"`
	Relay  settings.CIDRs     `set:"relay" default:"[\"127.0.0.1\",\"::1\"]"`
	Listen settings.AddrPort  `set:"listen" default:"[::1]:25"`
	Host   settings.HostPort  `set:"host"`
	Key    settings.KeySource `set:"key"`
	Any    any                `set:"any"`
	JSON   settings.JSON      `set:"json"`
	List   []string           `set:"list" default:"[\"a\"]"`
	Hosts  []host             `set:"hosts"`
	Map    map[string]int     `set:"map" default:"{\"x\":1}"`
	Peer   peers              `set:"peer"`
	Inner  host               `set:"inner"`
	Ptr    *host              `set:"ptr"`
	Wait   time.Duration      `set:"wait" default:"5s"`
	Fn     func()             `set:"fn"`
	Names  settings.OneOrMore `set:"names"`
	Merged merged             `set:"merged"`
}

type peers map[settings.CIDR]host

type merged map[string]int

func (merged) MergeSettings() {}

type tree = map[string]any

func TestErrorText(t *testing.T) {
	type throttled struct {
		queueConfig
		Rate *settings.Duration `set:"max_message_rate"`
	}
	tests := []struct {
		name string
		give any
		want string
	}{
		{"value", tree{"retry_interval": "soon"}, `make_queue_config: setting "retry_interval": invalid duration "soon"`},
		{"suggestion", tree{"max_agee": "7d"}, `make_queue_config: unknown setting "max_agee", did you mean "max_age"?`},
		{"known", tree{"retry": 1}, `make_queue_config: unknown setting "retry" (known: egress_pool, enable_dane, max_age, ` +
			`max_message_rate, max_retry_interval, retry_interval)`},
		{"refused", tree{"enable_dane": true}, `make_queue_config: setting "enable_dane" is not served yet: no validating resolver`},
		{"all at once", tree{"max_age": true, "egress_pool": 5.0},
			"make_queue_config: setting \"egress_pool\": expected a string, got a number 5\n" +
				`setting "max_age": expected a duration, got a bool true`},
		{"place of the table", &settings.Node{Value: tree{"max_age": "x", "pool": 1}, Place: settings.Place{File: "policy.lua", Line: 12}},
			"policy.lua:12: make_queue_config: setting \"max_age\": invalid duration \"x\"\n" +
				`policy.lua:12: unknown setting "pool" (known: egress_pool, enable_dane, max_age, max_message_rate, max_retry_interval, retry_interval)`},
		{"no table", "x", `make_queue_config: expected a table, got a string "x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var c throttled
			err := settings.Decode("make_queue_config", tt.give, &c)
			if err == nil || err.Error() != tt.want {
				t.Fatalf("got\n%v\nwant\n%s", err, tt.want)
			}
			var es settings.Errors
			var e *settings.Error
			if !errors.As(err, &es) || !errors.As(err, &e) || e.What != "make_queue_config" {
				t.Errorf("errors.As finds %v and %v", es, e)
			}
			if c.MaxAge != 0 {
				t.Error("C1: the destination changed")
			}
		})
	}
}

func TestWrongValues(t *testing.T) {
	tests := []struct {
		key  string
		give any
		want string
	}{
		{"n", "x", `setting "n": expected an int, got a string "x"`},
		{"n", 1.5, `setting "n": expected an int, got a number 1.5`},
		{"n", true, `setting "n": expected an int, got a bool true`},
		{"n", nil, `setting "n": expected an int, got nil`},
		{"n", 1e300, `setting "n": 1e+300 is too large, the highest is 9223372036854775807`},
		{"n", math.NaN(), `setting "n": expected an int, got a number NaN`},
		{"u", 256.0, `setting "u": 256 is too large, the highest is 255`},
		{"u", -1.0, `setting "u": -1 is too small, the lowest is 0`},
		{"flag", int64(1), `setting "flag": expected a bool, got a number 1`},
		{"s", 5.0, `setting "s": expected a string, got a number 5`},
		{"s", []any{1}, `setting "s": expected a string, got a list`},
		{"mode", "Require", `setting "mode": invalid value "Require", want one of Opportunistic, Required, Disabled, did you mean "Required"?`},
		{"mode", 3.0, `setting "mode": expected one of Opportunistic, Required, Disabled, got a number 3`},
		{"size", "10MB", `setting "size": expected a size, got a string "10MB" (sizes are plain integers in bytes)`},
		{"size", -1.0, `setting "size": invalid size -1: must not be negative`},
		{"free", "101%", `setting "free": invalid free space "101%", want 0% to 100%`},
		{"free", true, `setting "free": expected a percentage such as "10%" or a count, got a bool true`},
		{"relay", []any{"10.0.0.1", "192.168.1.1/24"},
			`setting "relay[2]": invalid address block "192.168.1.1/24": host bits are set, did you mean "192.168.1.0/24"?`},
		{"relay", "10.0.0.0/8", `setting "relay": expected a list of address blocks, got a string "10.0.0.0/8"`},
		{"listen", "localhost:25", `setting "listen": invalid ip:port "localhost:25", want for example "127.0.0.1:25" or "[::1]:25"`},
		{"host", "mx.example.com", `setting "host": invalid host:port "mx.example.com", want for example "mx.example.com:25"`},
		{"key", tree{"key_dato": "x"}, `setting "key": expected one of key_data, vault_path or event_name in the table, got a table`},
		{"key", tree{"vault_path": "p"}, `setting "key.vault_mount" is required`},
		{"json", tree{"a": func() {}}, `setting "json": in "a": expected a value that JSON can say, got a func()`},
		{"hosts", []any{tree{"name": "a"}, tree{"weight": 500.0}},
			"setting \"hosts[2].name\" is required\nsetting \"hosts[2].weight\": 500 is too large, the highest is 127"},
		{"hosts", tree{"name": "a"}, `setting "hosts": expected a list, got a table`},
		{"hosts", []any{tree{"name": "a", "wieght": 1}}, `unknown setting "hosts[1].wieght", did you mean "weight"?`},
		{"map", tree{"y": "z"}, `setting "map.y": expected an int, got a string "z"`},
		{"peer", tree{"10.0.0.1/8": tree{}}, `setting "peer["10.0.0.1/8"]": invalid address block "10.0.0.1/8": host bits are set, did you mean "10.0.0.0/8"?`},
		{"peer", tree{"10.0.0.1": tree{"name": "a"}, "10.0.0.1/32": tree{"name": "a"}}, `setting "peer["10.0.0.1/32"]": means the same as another key`},
		{"inner", tree{"weight": 2.0}, `setting "inner.name" is required`},
		{"fn", "x", `setting "fn": expected a function, got a string "x"`},
		{"wait", -2.0, `setting "wait": invalid duration -2: must not be negative`},
		{"wait", "5", `setting "wait": invalid duration "5": a unit is missing, want for example "5s"`},
	}
	for _, tt := range tests {
		t.Run(tt.key+" "+tt.want, func(t *testing.T) {
			var c kitchen
			err := settings.Decode("", tree{tt.key: tt.give}, &c)
			// paths with quotes in them are quoted once more
			got := strings.ReplaceAll(fmt.Sprint(err), `\"`, `"`)
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	var c kitchen
	fn := func() {}
	err := settings.Decode("x", tree{
		"flag": false, "n": 3.0, "u": 255.0, "f": int64(2), "s": "", "mode": "Disabled", "size": 9.0, "free": "77",
		"relay": []any{"10.0.0.0/8", "::ffff:192.0.2.1"}, "listen": "0.0.0.0:25", "host": "mx.example.com:587",
		"key": "/etc/key", "any": tree{"a": int64(1)}, "json": []any{"x", 1.0}, "list": tree{}, "map": []any{},
		"hosts": []any{tree{"name": "a"}, tree{"name": "b", "weight": 5.0}},
		"peer":  tree{"10.0.0.0/8": tree{"name": "p"}}, "ptr": tree{"name": "q"}, "wait": 1.5, "fn": fn, "names": "one",
		"merged": tree{"a": 1.0},
	}, &c)
	if err != nil {
		t.Fatal(err)
	}
	if c.Fn == nil {
		t.Error("the function was not taken")
	}
	c.Fn = nil
	want := kitchen{N: 3, U: 255, F: 2, Mode: "Disabled", Size: 9, Free: settings.FreeSpace{Count: 77},
		Relay: c.Relay, Listen: c.Listen, Host: settings.HostPort{Host: "mx.example.com", Port: 587},
		Key: settings.KeySource{Path: "/etc/key"}, Any: tree{"a": int64(1)}, JSON: settings.JSON{Value: []any{"x", 1.0}},
		List: []string{}, Map: map[string]int{}, Hosts: []host{{"a", 1}, {"b", 5}}, Peer: c.Peer, Inner: host{Weight: 1},
		Ptr: &host{"q", 1}, Wait: 1500 * time.Millisecond, Names: settings.OneOrMore{"one"}, Merged: merged{"a": 1}}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	if got := fmt.Sprint(c.Relay, c.Listen, c.Peer); got != "[10.0.0.0/8 192.0.2.1/32] 0.0.0.0:25 map[10.0.0.0/8:{p 1}]" {
		t.Error(got)
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	a, b := settings.New[kitchen](), settings.New(func(k *kitchen) { k.N = 0; k.Flag = false })
	if !a.Flag || a.N != 1024 || b.Flag || b.N != 0 || a.Listen.String() != "[::1]:25" || a.Free.Percent != 10 || a.Inner.Weight != 1 {
		t.Fatalf("%+v", a)
	}
	a.List[0], a.Map["x"], a.Relay[0] = "changed", 9, a.Relay[1]
	c := settings.New[kitchen]()
	if c.List[0] != "a" || c.Map["x"] != 1 || c.Relay[0].String() != "127.0.0.1/32" {
		t.Errorf("C2: defaults are shared: %+v", c)
	}
}

func TestOverlay(t *testing.T) {
	base := settings.New(func(k *kitchen) {
		k.S, k.Ptr, k.Merged, k.Inner.Name = "kept", &host{"p", 3}, merged{"a": 1, "b": 2}, "kept"
		k.Hosts = []host{{"old", 1}}
	})
	over := base
	err := settings.Overlay("x", tree{"n": 7.0, "ptr": tree{"weight": 4.0}, "map": tree{"y": 2.0}, "merged": tree{"b": 3.0},
		"inner": tree{"weight": 9.0}}, &over)
	if err != nil {
		t.Fatal(err)
	}
	want := base
	want.N, want.Ptr, want.Map, want.Merged, want.Inner.Weight = 7, &host{"p", 4}, map[string]int{"y": 2}, merged{"a": 1, "b": 3}, 9
	if !reflect.DeepEqual(over, want) {
		t.Errorf("got  %+v\nwant %+v", over, want)
	}
	if base.Ptr.Weight != 3 || base.Merged["b"] != 2 || base.Map["x"] != 1 {
		t.Errorf("C2: the base changed: %+v", base)
	}
	if err := settings.Overlay("x", tree{"hosts": []any{tree{"weight": 2.0}}}, &over); err == nil {
		t.Error("a new element without its required setting was taken")
	}
	if err := settings.Overlay("x", tree{"n": 8.0, "u": "x"}, &over); err == nil || over.N != 7 {
		t.Errorf("C1: %v, n = %d", err, over.N)
	}
}

type checked struct {
	Low  int `set:"low"`
	High int `set:"high" default:"10"`
}

func (c *checked) Validate() error {
	if c.Low > c.High {
		return settings.Fault("low", "%d is above high", c.Low)
	}
	return nil
}

type alsoChecked struct {
	Other int `set:"other"`
}

func (alsoChecked) Validate() error { return nil }

func TestValidate(t *testing.T) {
	type outer struct {
		checked
		Parts []checked `set:"parts"`
	}
	var o outer
	err := settings.Decode("make", tree{"low": 11.0}, &o)
	if got := fmt.Sprint(err); got != `make: setting "low": 11 is above high` {
		t.Error(got)
	}
	err = settings.Decode("make", tree{"parts": []any{tree{"low": 3.0, "high": 2.0}}}, &o)
	if got := fmt.Sprint(err); got != `make: setting "parts[1].low": 3 is above high` {
		t.Error(got)
	}
	if err := settings.Decode("make", tree{"low": 3.0, "high": "x"}, &o); strings.Contains(err.Error(), "above") {
		t.Error("asked although a field is wrong:", err)
	}
}

type lenient struct {
	A int `set:"alpha"`
}

func (lenient) IgnoreUnknown() {}

func TestLenient(t *testing.T) {
	var l lenient
	if err := settings.Decode("x", tree{"alpha": 1.0, "beta": 2.0}, &l); err != nil || l.A != 1 {
		t.Error(err, l)
	}
	unknown, err := settings.DecodeLenient("x", tree{"alpah": 1.0}, &l)
	if err != nil || len(unknown) != 1 || !unknown[0].Unknown() || unknown.Error() != `x: unknown setting "alpah", did you mean "alpha"?` {
		t.Error(err, unknown)
	}
	if _, err := settings.DecodeLenient("x", tree{"alpha": "z", "b": 1}, &l); err == nil {
		t.Error("a wrong value passed")
	}
}

func TestManyFaultsAreBounded(t *testing.T) {
	m := tree{}
	for i := range 1000 {
		m[fmt.Sprint("key", i)] = 1
	}
	var l checked
	var es settings.Errors
	err := settings.Decode("x", m, &l)
	if !errors.As(err, &es) || len(es) != settings.MaxFaults+1 || !strings.HasSuffix(err.Error(), "and 900 more faults") {
		t.Errorf("%d faults", len(es))
	}
}

func TestDeepTree(t *testing.T) {
	var v any = "x"
	for range 100000 {
		v = []any{v}
	}
	type list []list
	var l list
	if err := settings.Decode("x", v, &l); err == nil || !strings.Contains(err.Error(), "levels deep") {
		t.Errorf("%.100v", err)
	}
}

func TestWrongDeclarations(t *testing.T) {
	type badDefault struct {
		A int `set:"a" default:"x"`
	}
	type twice struct {
		A int `set:"a"`
		B int `set:"a"`
	}
	type unasked struct { // two hidden Validate methods: neither is promoted, neither can be called
		checked
		alsoChecked
	}
	type requiredDefault struct {
		A int `set:"a" required:"true" default:"1"`
	}
	for _, dst := range []any{new(badDefault), new(twice), new(unasked), new(requiredDefault), badDefault{}, nil} {
		if err := settings.Decode("x", tree{}, dst); err == nil {
			t.Errorf("%T was taken", dst)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("New did not panic")
		}
	}()
	settings.New[badDefault]()
}

func TestDescribe(t *testing.T) {
	var got []string
	for _, f := range settings.Describe(kitchen{}) {
		got = append(got, f.Key+":"+f.Type)
	}
	want := "flag:bool n:int u:int f:number s:string mode:enum size:size free:percent|size relay:list<cidr> listen:ip:port " +
		"host:host:port key:keysource any:any json:json list:list<string> hosts:list<table> map:map<string,int> " +
		"peer:map<cidr,table> inner:table ptr:table wait:duration fn:function names:string|list<string> merged:map<string,int>"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	fs := settings.Describe(reflect.TypeFor[*queueConfig]())
	if f := fs[len(fs)-1]; f.Key != "enable_dane" || f.Refused == "" {
		t.Errorf("%+v", f)
	}
	if f := fs[2]; f.Key != "max_age" || f.Default != "7d" || f.Name != "MaxAge" || f.Required || f.Optional {
		t.Errorf("%+v", f)
	}
}
