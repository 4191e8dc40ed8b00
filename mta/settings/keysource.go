package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxKeySize bounds what a [KeySource] reads, in bytes.
const MaxKeySize = 1 << 20

// ErrNoLoader is the error of a KeySource whose kind needs a [Loader] that was not given.
var ErrNoLoader = errors.New("no loader for this kind of key source")

// KeySource says where secret bytes come from, by its shape: a path, {key_data=...}, {vault_path=...} or
// {event_name=...}. The zero value is unset. Source: value syntaxes, keysource.
type KeySource struct {
	// Path is a file, read when needed.
	Path string
	// Data is the bytes themselves, in place of a path.
	Data []byte
	// Vault is a field of a secret in a HashiCorp Vault KV v2 store.
	Vault *VaultKey
	// Event is an event that returns the bytes.
	Event *EventKey
}

// VaultKey names a field of a Vault secret.
type VaultKey struct {
	// Address and Token fall back to what the loader knows.
	Address *string `set:"vault_address"`
	Token   *string `set:"vault_token"`
	Mount   string  `set:"vault_mount" required:"true"`
	Path    string  `set:"vault_path" required:"true"`
	Key     string  `set:"vault_key" default:"key"`
}

// EventKey names an event and its arguments.
type EventKey struct {
	Name string `set:"event_name" required:"true"`
	Args []any  `set:"event_args"`
}

// inlineKey is the shape {key_data=...}.
type inlineKey struct {
	Data string `set:"key_data" required:"true"`
}

// Loader fetches the kinds of keys that do not live in this process.
type Loader interface {
	LoadVault(ctx context.Context, k VaultKey) ([]byte, error)
	LoadEvent(ctx context.Context, k EventKey) ([]byte, error)
}

// IsZero says whether no source was given.
func (k KeySource) IsZero() bool {
	return k.Path == "" && k.Data == nil && k.Vault == nil && k.Event == nil
}

// Load returns the bytes. l may be nil when neither Vault nor events are used; otherwise the error is [ErrNoLoader].
// At most [MaxKeySize] bytes are read.
func (k KeySource) Load(ctx context.Context, l Loader) ([]byte, error) {
	switch {
	case k.Data != nil:
		return k.Data, nil
	case k.Path != "":
		return readKeyFile(k.Path)
	case k.Vault != nil && l != nil:
		data, err := l.LoadVault(ctx, *k.Vault)
		return checkKey(data, err, "vault secret "+k.Vault.Mount+"/"+k.Vault.Path)
	case k.Event != nil && l != nil:
		data, err := l.LoadEvent(ctx, *k.Event)
		return checkKey(data, err, "event "+k.Event.Name)
	case k.Vault != nil:
		return nil, fmt.Errorf("vault secret %s/%s: %w", k.Vault.Mount, k.Vault.Path, ErrNoLoader)
	case k.Event != nil:
		return nil, fmt.Errorf("event %s: %w", k.Event.Name, ErrNoLoader)
	}
	return nil, errors.New("no key source is set")
}

func checkKey(data []byte, err error, what string) ([]byte, error) {
	if err != nil {
		return nil, fmt.Errorf("loading key from %s: %w", what, err)
	}
	if len(data) > MaxKeySize {
		return nil, fmt.Errorf("loading key from %s: more than %d bytes", what, MaxKeySize)
	}
	return data, nil
}

func readKeyFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("loading key: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxKeySize+1))
	return checkKey(data, err, path)
}

// UnmarshalSetting reads one of the shapes.
func (k *KeySource) UnmarshalSetting(v any) error {
	if s, ok := v.(string); ok {
		if s == "" {
			return errors.New("the path of a key must not be empty")
		}
		*k = KeySource{Path: s}
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return Expected("a path, {key_data=...}, {vault_path=...} or {event_name=...}", v)
	}
	var out KeySource
	var err error
	switch {
	case has(m, "key_data"):
		var in inlineKey
		err = Decode("", m, &in)
		out.Data = []byte(in.Data)
	case has(m, "vault_mount"), has(m, "vault_path"):
		out.Vault = new(VaultKey)
		err = Decode("", m, out.Vault)
	case has(m, "event_name"):
		out.Event = new(EventKey)
		err = Decode("", m, out.Event)
	default:
		return Expected("one of key_data, vault_path or event_name in the table", v)
	}
	if err == nil {
		*k = out
	}
	return err
}

func has(m map[string]any, key string) bool { return m[key] != nil }

// MarshalSetting gives the shape back with secrets masked.
func (k KeySource) MarshalSetting() any {
	switch {
	case k.Data != nil:
		return Map{{"key_data", masked}}
	case k.Path != "":
		return k.Path
	case k.Vault != nil:
		v := *k.Vault
		if v.Token != nil {
			v.Token = new(masked)
		}
		return Encode(v)
	case k.Event != nil:
		return Encode(*k.Event)
	}
	return nil
}

// masked stands for a secret in print.
const masked = "********"

// String names the source without its secrets.
func (k KeySource) String() string {
	switch {
	case k.Data != nil:
		return "inline key"
	case k.Path != "":
		return k.Path
	case k.Vault != nil:
		return "vault secret " + k.Vault.Mount + "/" + k.Vault.Path
	case k.Event != nil:
		return "event " + k.Event.Name
	}
	return "unset"
}

// GoString keeps secrets out of %#v.
func (k KeySource) GoString() string { return "settings.KeySource{" + k.String() + "}" }

// SettingType is "keysource".
func (KeySource) SettingType() string { return "keysource" }
