package settings

import (
	"encoding/json"
	"fmt"
	"math"
)

// JSON is any value that JSON can say: nil, bool, number, string, list or table of such. The zero value is null.
type JSON struct {
	// Value is made of nil, bool, int64, float64, string, []any and map[string]any.
	Value any
}

// UnmarshalSetting refuses functions, objects and numbers that JSON cannot say.
func (j *JSON) UnmarshalSetting(v any) error {
	if err := checkJSON(v, 0); err != nil {
		return err
	}
	j.Value = v
	return nil
}

func checkJSON(v any, depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("nested more than %d levels deep", MaxDepth)
	}
	switch v := v.(type) {
	case nil, bool, string:
	case map[string]any:
		for k, e := range v {
			if err := checkJSON(e, depth+1); err != nil {
				return fmt.Errorf("in %q: %w", clip(k), err)
			}
		}
	case []any:
		for i, e := range v {
			if err := checkJSON(e, depth+1); err != nil {
				return fmt.Errorf("in [%d]: %w", i+1, err)
			}
		}
	default:
		f, ok := number(v)
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			return Expected("a value that JSON can say", v)
		}
	}
	return nil
}

// MarshalSetting gives the value with tables ordered by key.
func (j JSON) MarshalSetting() any { return ordered(j.Value) }

// MarshalJSON prints the value.
func (j JSON) MarshalJSON() ([]byte, error) { return json.Marshal(j.Value) }

// SettingType is "json".
func (JSON) SettingType() string { return "json" }

// OneOrMore is a list of strings of which one may be given bare: 'a' or {'a', 'b'}.
type OneOrMore []string

// UnmarshalSetting reads a string or a list of strings.
func (o *OneOrMore) UnmarshalSetting(v any) error {
	if s, ok := v.(string); ok {
		*o = OneOrMore{s}
		return nil
	}
	if _, ok := v.([]any); !ok {
		return Expected("a string or a list of strings", v)
	}
	var l []string
	if err := Decode("", v, &l); err != nil {
		return err
	}
	*o = l
	return nil
}

// SettingType is "string|list<string>".
func (OneOrMore) SettingType() string { return "string|list<string>" }
