package mta

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
)

func keys(m *Meta) (ks []string) {
	for k := range m.All() {
		ks = append(ks, k)
	}
	return ks
}

func TestMeta(t *testing.T) {
	var m Meta
	if _, ok := m.Get("a"); ok || m.Len() != 0 || m.String("a") != "" {
		t.Error("the zero value is not empty")
	}
	m.Delete("a")
	m.Set("a", "1")
	m.Set("b", int64(2))
	m.Set("c", true)
	m.Set("a", "one")
	if v, ok := m.Get("b"); !ok || v != int64(2) || m.String("b") != "" || m.String("a") != "one" {
		t.Errorf("b is %v", v)
	}
	if got := keys(&m); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("order %v", got)
	}
	clone := m.Clone()
	m.Set("b", nil)
	m.Delete("missing")
	if got := keys(&m); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("after removal %v", got)
	}
	if old := m.kv[:3]; old[2].key != "" || old[2].val != nil {
		t.Error("a removed value is kept alive")
	}
	clone.Set("d", "4")
	if clone.Len() != 4 || m.Len() != 2 {
		t.Error("the clone is not independent")
	}
	m.Set("c", false)
	m.Merge(&clone)
	if got := keys(&m); !slices.Equal(got, []string{"a", "c", "b", "d"}) || m.Map()["c"] != true {
		t.Errorf("merged %v", m.Map())
	}
	for k := range m.All() {
		if k != "a" {
			t.Error("went on after break")
		}
		break
	}
	text, err := json.Marshal(m)
	if err != nil || string(text) != `{"a":"one","b":2,"c":true,"d":"4"}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestCheckMetaValue(t *testing.T) {
	for _, v := range []any{nil, true, "s", int64(1), 1.5, []any{}, []any{nil, []any{"x"}}, map[string]any{"k": []any{1.0}}} {
		if err := CheckMetaValue(v); err != nil {
			t.Errorf("%#v: %v", v, err)
		}
	}
	loop := map[string]any{}
	loop["self"] = []any{loop}
	for _, v := range []any{1, []string{"s"}, struct{}{}, []any{1}, map[string]any{"k": uint8(1)}, math.NaN(),
		[]any{math.Inf(-1)}, loop} {
		if CheckMetaValue(v) == nil {
			t.Errorf("%T is accepted", v)
		}
	}
}

func TestSetMetaChecks(t *testing.T) {
	m := newRig(t).New(envelope, nil)
	if err := m.Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.SetMeta(t.Context(), "k", 1); err == nil || m.Dirty() {
		t.Errorf("%v, dirty %v", err, m.Dirty())
	}
	if err := m.SetMeta(t.Context(), "k", "v"); err != nil || !m.Dirty() {
		t.Errorf("%v, dirty %v", err, m.Dirty())
	}
}
