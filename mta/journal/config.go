package journal

import (
	"strings"

	"example.com/svc/mta"
	"example.com/svc/mta/settings"
)

// Config is one logger: the settings of configure_local_logs (logs.md sections 3 to 5). It is made with
// [settings.New].
type Config struct {
	// LogDir is the directory of the segments; it is made when it does not exist.
	LogDir string `set:"log_dir" required:"true"`
	// MaxFileSize is how many bytes, before compression, a segment may grow to before the next one is begun.
	MaxFileSize settings.Size `set:"max_file_size" default:"1000000000"`
	// MaxSegmentDuration is how long a segment may stay open. Unset means no limit.
	MaxSegmentDuration *settings.Duration `set:"max_segment_duration"`
	// CompressionLevel is the zstd level, 1 to 21, or 0 for the default, 3.
	CompressionLevel int `set:"compression_level" default:"0"`
	// BackPressure is how many records may wait for the disk before those who make records have to wait.
	BackPressure int `set:"back_pressure" default:"128000"`
	// Meta names the metadata that go into records. A "*" at the end matches any rest.
	Meta []string `set:"meta"`
	// Headers names the message headers that go into records, without regard to case. A "*" at the end matches any
	// rest. Headers cost loading the message for every record.
	Headers []string `set:"headers"`
	// PerRecord changes the logger for record types; Any stands for the types that are not listed.
	PerRecord map[RecordName]PerRecord `set:"per_record"`
	// FilterEvent is the name of an event that is called with the message and answers true to log the record. Records
	// without a message are not filtered.
	FilterEvent string `set:"filter_event"`
	// MinFreeSpace is how much of the disk of LogDir must be free for new mail to be accepted.
	MinFreeSpace settings.FreeSpace `set:"min_free_space" default:"10%"`
	// MinFreeInodes is how many inodes of the disk of LogDir must be free for new mail to be accepted.
	MinFreeInodes settings.FreeSpace `set:"min_free_inodes" default:"10%"`
}

// PerRecord is how one record type is logged. It is not completed from the entry of Any (logs.md 3.12). It is made with
// [settings.New].
type PerRecord struct {
	// Suffix is appended to the names of the segments.
	Suffix string `set:"suffix"`
	// LogDir is another directory for this type, made on first use. Unset means that of the logger.
	LogDir string `set:"log_dir"`
	// Enable says whether the type is logged at all.
	Enable bool `set:"enable" default:"true"`
	// SegmentHeader is written at the start of each segment. Types that share a directory and a suffix must agree.
	SegmentHeader string `set:"segment_header"`
}

// Refused names the settings that are known and not served.
func (PerRecord) Refused() map[string]string {
	return map[string]string{"template": "record templates are not served yet; records are logged as JSON"}
}

// RecordName is the name of a record type, or [Any].
type RecordName string

// Any stands for the record types that have no entry of their own.
const Any RecordName = "Any"

// Values lists the names.
func (RecordName) Values() []string {
	names := make([]string, 0, len(mta.RecordTypes)+1)
	for _, t := range mta.RecordTypes {
		names = append(names, string(t))
	}
	return append(names, string(Any))
}

// maxBackPressure bounds the memory that a queue of records claims at once.
const maxBackPressure = 100_000_000

// Validate checks what the types of the fields do not.
func (c Config) Validate() error {
	switch {
	case c.LogDir == "":
		return settings.Fault("log_dir", "may not be empty")
	case c.CompressionLevel < 0 || c.CompressionLevel > 21:
		return settings.Fault("compression_level", "invalid level %d, want 0 to 21", c.CompressionLevel)
	case c.BackPressure < 1 || c.BackPressure > maxBackPressure:
		return settings.Fault("back_pressure", "invalid number %d, want 1 to %d", c.BackPressure, maxBackPressure)
	case c.MaxFileSize == 0 || c.MaxFileSize > 1<<62:
		return settings.Fault("max_file_size", "invalid size %d, want 1 to %d", c.MaxFileSize, uint64(1<<62))
	case c.MaxSegmentDuration != nil && *c.MaxSegmentDuration <= 0:
		return settings.Fault("max_segment_duration", "must be longer than nothing")
	}
	for _, name := range c.Meta {
		if err := checkPattern("meta", name); err != nil {
			return err
		}
	}
	for _, name := range c.Headers {
		if err := checkPattern("headers", name); err != nil {
			return err
		}
	}
	_, err := c.places()
	return err
}

// checkPattern admits one "*", at the end (README section 3, Glob).
func checkPattern(setting, name string) error {
	if i := strings.IndexByte(name, '*'); name == "" || i >= 0 && i < len(name)-1 {
		return settings.Fault(setting, `invalid name %q: want a name, with a "*" at most at its end`, name)
	}
	return nil
}

// place is where the lines of record types go.
type place struct{ dir, suffix string }

// places returns the segment headers by place. It refuses places that would need two.
func (c Config) places() (map[place]string, error) {
	headers := map[place]string{}
	for _, t := range mta.RecordTypes {
		e := c.entry(t)
		if !e.Enable {
			continue
		}
		p := place{e.LogDir, e.Suffix}
		if strings.ContainsAny(p.suffix, "/\x00") {
			return nil, settings.Fault("per_record", "invalid suffix %q: it may not hold a path separator", p.suffix)
		}
		if h, ok := headers[p]; ok && h != e.SegmentHeader {
			return nil, settings.Fault("per_record",
				"record types that share the directory %q and the suffix %q have different segment_headers", p.dir, p.suffix)
		}
		headers[p] = e.SegmentHeader
	}
	return headers, nil
}

// entry returns how records of type t are logged: the entry of the type, else that of Any, else the logger's own place
// (logs.md 3.11 and 3.12).
func (c Config) entry(t mta.RecordType) PerRecord {
	e, ok := c.PerRecord[RecordName(t)]
	if !ok {
		e, ok = c.PerRecord[Any]
	}
	if !ok {
		e = PerRecord{Enable: true}
	}
	if e.LogDir == "" {
		e.LogDir = c.LogDir
	}
	return e
}
