package settings

// Unmarshaler is a field type that reads a setting from any plain value (without Nodes). Its error may be made with
// [Expected] or [Fault], or be the [Errors] of a nested Decode; their paths are put below the path of the field.
type Unmarshaler interface {
	UnmarshalSetting(v any) error
}

// Marshaler is a field type that says how [Encode] prints it: a string, bool, int64, float64, []any, [Map] or nil
// (unset).
type Marshaler interface {
	MarshalSetting() any
}

// Typer is a field type that names its syntax for [Describe] and for errors, with the words of the settings table:
// "duration", "throttle-spec".
type Typer interface {
	SettingType() string
}

// Enum is a string type with a fixed list of values, which are compared exactly.
type Enum interface {
	Values() []string
}

// Refuser is a settings struct that knows names it does not serve yet, each with the reason. Giving one is an error;
// they count as known for suggestions. It is asked once per type, on the zero value.
type Refuser interface {
	Refused() map[string]string
}

// Validator is a settings struct that checks itself. It is asked after its fields were read without a fault.
// Its error may be made with [Fault].
type Validator interface {
	Validate() error
}

// Lenient is a settings struct whose specification tolerates unknown keys. [Decode] passes over them;
// [DecodeLenient] returns them for the log.
type Lenient interface {
	IgnoreUnknown()
}

// Merger is a map type whose entries are kept by [Overlay]: the given keys are put into the map that is there.
// Other maps are replaced.
type Merger interface {
	MergeSettings()
}
