package mta

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
)

// Names of predefined metadata (spec README section 4). Keys of policies begin with "x_".
const (
	MetaQueue             = "queue"
	MetaTenant            = "tenant"
	MetaCampaign          = "campaign"
	MetaRoutingDomain     = "routing_domain"
	MetaReceptionProtocol = "reception_protocol"
	MetaReceivedVia       = "received_via"
	MetaReceivedFrom      = "received_from"
	MetaHostname          = "hostname"
	MetaAuthnID           = "authn_id"
	MetaAuthzID           = "authz_id"
	MetaEHLODomain        = "ehlo_domain"
	MetaTLSCipher         = "tls_cipher"
	MetaTLSVersion        = "tls_protocol_version"
	MetaTLSPeerName       = "tls_peer_subject_name"
	MetaHTTPAuth          = "http_auth"
	MetaExtra             = "extra"
)

// Meta is an ordered set of named JSON values. The zero value is empty and ready for use. Values are nil, bool,
// string, int64, float64, []any and map[string]any of such ([CheckMetaValue]); they come back from the store as they
// were set. Anything else that is JSON-able comes back as its JSON. Values are shared between clones and must not be
// changed in place. A Meta is not safe for concurrent change.
type Meta struct {
	kv []metaPair
}

type metaPair struct {
	key string
	val any
}

// Get returns the value of key and whether it is set.
func (m *Meta) Get(key string) (any, bool) {
	for i := range m.kv {
		if m.kv[i].key == key {
			return m.kv[i].val, true
		}
	}
	return nil, false
}

// String returns the value of key when it is a string, else "".
func (m *Meta) String(key string) string {
	v, _ := m.Get(key)
	s, _ := v.(string)
	return s
}

// Set gives key the value, which must be JSON-able: see [Meta]. A nil value removes the key.
func (m *Meta) Set(key string, value any) {
	if value == nil {
		m.Delete(key)
		return
	}
	for i := range m.kv {
		if m.kv[i].key == key {
			m.kv[i].val = value
			return
		}
	}
	m.kv = append(m.kv, metaPair{key, value})
}

// Delete removes key.
func (m *Meta) Delete(key string) {
	for i := range m.kv {
		if m.kv[i].key == key {
			m.kv = slices.Delete(m.kv, i, i+1)
			return
		}
	}
}

// Len returns the number of keys.
func (m *Meta) Len() int { return len(m.kv) }

// All yields the keys and values in order of first setting.
func (m *Meta) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for i := range m.kv {
			if !yield(m.kv[i].key, m.kv[i].val) {
				return
			}
		}
	}
}

// Clone returns an independent copy with room for a few more keys.
func (m *Meta) Clone() Meta {
	c := Meta{kv: make([]metaPair, len(m.kv), len(m.kv)+4)}
	copy(c.kv, m.kv)
	return c
}

// Merge sets every key of other.
func (m *Meta) Merge(other *Meta) {
	for i := range other.kv {
		m.Set(other.kv[i].key, other.kv[i].val)
	}
}

// Map returns the content as a map.
func (m *Meta) Map() map[string]any {
	r := make(map[string]any, len(m.kv))
	for i := range m.kv {
		r[m.kv[i].key] = m.kv[i].val
	}
	return r
}

// MarshalJSON writes a JSON object.
func (m Meta) MarshalJSON() ([]byte, error) { return json.Marshal(m.Map()) }

// maxMetaDepth is how deep lists and maps may be nested inside a value.
const maxMetaDepth = 32

// CheckMetaValue returns an error unless v is built of the types a [Meta] holds and can be written as JSON, which has no
// infinity and no NaN (RFC 8259 section 6). It converts nothing.
func CheckMetaValue(v any) error { return checkMetaValue(v, 0) }

func checkMetaValue(v any, depth int) error {
	if depth > maxMetaDepth {
		return errMetaDepth
	}
	switch v := v.(type) {
	case nil, bool, string, int64:
		return nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.New("metadata value is no finite number")
		}
		return nil
	case []any:
		for _, e := range v {
			if err := checkMetaValue(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	case map[string]any:
		for _, e := range v {
			if err := checkMetaValue(e, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("metadata value of type %T cannot be stored as JSON", v)
}
