package scriptmods_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"example.com/svc/mta/server"
	"example.com/svc/scriptmods"
)

// Each name of the surface is declared or known as not served yet, and not both.
func TestUnservedLists(t *testing.T) {
	text, err := os.ReadFile("../cmd/internal/house/testdata/surface.json")
	if err != nil {
		t.Fatal(err)
	}
	var surface struct {
		Modules map[string][]string `json:"modules"`
	}
	if err := json.Unmarshal(text, &surface); err != nil || len(surface.Modules["svc"]) < 50 {
		t.Fatal(len(surface.Modules["svc"]), err)
	}
	served := map[string]bool{"string": true} // the standard library has a part of it
	absent := map[string]bool{}
	declared := map[string]bool{"svc.on": true} // by package script
	var missing func(string) error
	for _, m := range scriptmods.All(server.NewBuilder(server.Config{}), scriptmods.Options{}) {
		if m.Absent != nil {
			absent[m.Name] = true
			continue
		}
		served[m.Name] = true
		for _, d := range m.Describe() {
			declared[d.Name] = true
		}
		if m.Name == "svc" {
			missing = m.Missing
		}
	}
	for name := range surface.Modules {
		if served[name] == absent[name] {
			t.Errorf("module %s: served is %v, known as not served is %v", name, served[name], absent[name])
		}
	}
	for name := range absent {
		if surface.Modules[name] == nil {
			t.Errorf("module %s is not in the surface", name)
		}
	}
	known := 0
	for _, name := range surface.Modules["svc"] {
		err := missing(name)
		if declared["svc."+name] == (err != nil) {
			t.Errorf("svc.%s: declared is %v, Missing says %v", name, declared["svc."+name], err)
		}
		if err != nil {
			known++
			if !strings.Contains(err.Error(), "svc."+name+" is not served yet") {
				t.Error(err)
			}
		}
	}
	if known == 0 || missing("zebra") != nil {
		t.Errorf("%d names are not served, zebra: %v", known, missing("zebra"))
	}
}
