package settings_test

import (
	"fmt"
	"sync"
	"testing"

	"example.com/svc/mta/settings"
)

type defaulted struct {
	Ptr    *settings.Duration `set:"ptr" default:"5m"`
	Any    any                `set:"any" default:"{\"a\":[1]}"`
	Text   any                `set:"text" default:"plain"`
	Host   *host              `set:"host" default:"{\"name\":\"h\"}"`
	Names  settings.OneOrMore `set:"names" default:"_INBOX"`
	Many   settings.OneOrMore `set:"many" default:"[\"a\",\"b\"]"`
	Size   settings.Size      `set:"size" default:"2097152"`
	Nested struct {
		List []string       `set:"list" default:"[\"x\"]"`
		Map  map[string]any `set:"map" default:"{\"k\":[1]}"`
	} `set:"nested"`
}

const defaultedText = "ptr = \"5m\"\ntext = \"plain\"\nnames = [\"_INBOX\"]\nmany = [\"a\", \"b\"]\nsize = 2097152\n\n" +
	"[any]\na = [1]\n\n[host]\nname = \"h\"\nweight = 1\n\n[nested]\nlist = [\"x\"]\n\n[nested.map]\nk = [1]\n"

func TestDefaultTags(t *testing.T) {
	v := settings.New[defaulted]()
	if got := string(settings.Encode(v).TOML()); got != defaultedText {
		t.Errorf("got\n%s", got)
	}
	// C2: change all memory it leads to.
	*v.Ptr, v.Host.Name, v.Names[0], v.Nested.List[0] = 1, "changed", "changed", "changed"
	v.Any.(map[string]any)["a"].([]any)[0] = "changed"
	v.Nested.Map["k"].([]any)[0] = "changed"
	v = settings.New[defaulted]()
	if got := string(settings.Encode(v).TOML()); got != defaultedText {
		t.Errorf("C2: shared\n%s", got)
	}
}

func TestTreeOfEncode(t *testing.T) {
	var back defaulted
	if err := settings.Decode("x", settings.Encode(settings.New[defaulted]()).Tree(), &back); err != nil {
		t.Fatal(err)
	}
	if got := string(settings.Encode(&back).TOML()); got != defaultedText {
		t.Errorf("got\n%s", got)
	}
	if got := settings.Encode(back).Get("names"); fmt.Sprint(got) != "[_INBOX]" {
		t.Error(got)
	}
	if got := settings.Encode(map[string]int{"b": 1, "a": 2}); fmt.Sprint(got) != "[{a 2} {b 1}]" {
		t.Error(got)
	}
}

func TestConcurrentFirstUse(t *testing.T) {
	type fresh struct {
		A []string           `set:"a" default:"[\"x\"]"`
		B map[string]float64 `set:"b" default:"{\"x\":1}"`
		C *host              `set:"c"`
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			var f fresh
			if err := settings.Decode("x", tree{"c": tree{"name": fmt.Sprint(i)}}, &f); err != nil || f.C.Name != fmt.Sprint(i) {
				t.Error(err, f)
			}
			f.A[0], f.B["x"] = "mine", 2
		})
	}
	wg.Wait()
}

func TestOverlayLenientAndOneOrMore(t *testing.T) {
	v := settings.New[defaulted]()
	unknown, err := settings.OverlayLenient("x", tree{"names": []any{"p", "q"}, "nmaes": 1, "text": nil, "any": &settings.Node{Value: 5.0}}, &v)
	if err != nil || len(unknown) != 1 || unknown[0].Suggestion != "names" {
		t.Fatal(unknown, err)
	}
	if fmt.Sprint(v.Names, v.Many, v.Text, v.Any) != "[p q] [a b] <nil> 5" {
		t.Errorf("%v", v)
	}
	err = settings.Overlay("x", tree{"names": []any{"p", 5.0}}, &v)
	if got := fmt.Sprint(err); got != `x: setting "names[2]": expected a string, got a number 5` {
		t.Error(got)
	}
	err = settings.Overlay("x", tree{"names": true}, &v)
	if got := fmt.Sprint(err); got != `x: setting "names": expected a string or a list of strings, got a bool true` {
		t.Error(got)
	}
}
