package message

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"example.com/svc/mta"
	"example.com/svc/script"
)

func metaMethods() []script.Func {
	return []script.Func{
		script.Fn("get_meta", "Returns the value of a metadata key, nil when it is not set.", messageGet, "key"),
		script.Fn("set_meta", "Gives a metadata key a value that JSON can say; nil removes the key.", messageSet,
			"key", "value"),
	}
}

func messageGet(ctx context.Context, m *mta.Message, key string) (any, error) {
	meta, err := m.Meta(ctx)
	if err != nil {
		return nil, err
	}
	v, _ := meta.Get(key)
	return v, nil
}

func messageSet(ctx context.Context, m *mta.Message, key string, value any) error {
	v, err := metaValue(key, value)
	if err != nil {
		return err
	}
	return m.SetMeta(ctx, key, v)
}

func sessionGet(s *mta.Session, key string) any {
	v, _ := s.Meta.Get(key)
	return v
}

func sessionSet(s *mta.Session, key string, value any) error {
	v, err := metaValue(key, value)
	if err != nil {
		return err
	}
	s.Meta.Set(key, v)
	return nil
}

// maxKey bounds the names of metadata.
const maxKey = 1024

// metaValue turns a value of a policy into one that a Meta holds.
func metaValue(key string, v any) (any, error) {
	if key == "" || len(key) > maxKey || !utf8.ValidString(key) {
		return nil, fmt.Errorf("set_meta: a key is UTF-8 text of 1 to %d bytes", maxKey)
	}
	v, err := plain(v)
	if err != nil {
		return nil, fmt.Errorf("set_meta %q: %w", key, err)
	}
	if err := mta.CheckMetaValue(v); err != nil {
		return nil, fmt.Errorf("set_meta %q: %w", key, err)
	}
	return v, nil
}

// plain makes text of addresses and refuses what would not come back from the spool as it went. The maps and lists of
// v were made for this call and are changed in place. Their depth is bounded by the conversion from Lua.
func plain(v any) (any, error) {
	switch v := v.(type) {
	case mta.Address:
		return v.String(), nil
	case *mta.Address:
		return v.String(), nil
	case string:
		if !utf8.ValidString(v) {
			return nil, errors.New("text is not UTF-8 and cannot be stored as JSON")
		}
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, errors.New("a number that is not finite cannot be stored as JSON")
		}
	case []any:
		for i := range v {
			e, err := plain(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = e
		}
	case map[string]any:
		for k, e := range v {
			e, err := plain(e)
			if err != nil {
				return nil, err
			}
			if _, err := plain(k); err != nil {
				return nil, err
			}
			v[k] = e
		}
	}
	return v, nil
}
