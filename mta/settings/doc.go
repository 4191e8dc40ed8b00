// Package settings makes one tagged struct the settings of Go, Lua, JSON and TOML.
//
// A subsystem declares what it obeys as a struct:
//
//	type Config struct {
//		// MaxAge is how long a message may stay before it expires.
//		MaxAge settings.Duration `set:"max_age" default:"7d"`
//		// MaxRate limits how fast messages become ready. Unset means no limit.
//		MaxRate *limit.Rate `set:"max_message_rate"`
//	}
//
// The tag holds the name, the default and required:"true", nothing else; the comment is the documentation.
// A pointer means "may be unset". Embedded structs are inlined. Fields without a tag are not settings.
// Syntaxes are types: a field type with UnmarshalText reads strings, one with UnmarshalSetting reads any value.
//
// The story of one decode: a source (a Lua table, JSON, TOML) becomes a tree of plain values; the struct starts from the
// defaults of its tags ([Decode]) or from what it holds ([Overlay]); each key of the tree is looked up in the plan of the
// type, which is made once per type; a [Validator] is asked; all faults come back at once as [Errors], each with its
// path, its place when known, and the nearest known name. A setting that is known but not served is refused with the
// reason ([Refuser]), so that nothing is read and ignored. Go callers start with [New], so that false and 0 mean what
// they say.
//
// Invariants:
//
//   - C1: a failed decode leaves the destination as it was.
//   - C2: two decoded values share no memory that a decode writes: defaults are copied deeply, and an overlay
//     replaces slices, maps and pointees instead of changing them.
//   - C3: every key of the tree is either applied, or reported.
//
// Limits: documents nest at most [MaxDepth] levels; at most [MaxFaults] faults are kept. Field types that read
// themselves (UnmarshalText, UnmarshalSetting) must be values that may be copied.
package settings
