package smtpd

import (
	"net/netip"
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/mail"
	"example.com/svc/mta/settings"
)

// Config is one listener: the settings of start_esmtp_listener (settings.tsv). Make it with settings.New, so that the
// defaults are set.
type Config struct {
	// Listen is the address and port to bind.
	Listen string `set:"listen" default:"127.0.0.1:2025"`
	// Hostname is the name in banner, replies and trace headers. Empty means the name of the machine.
	Hostname string `set:"hostname"`
	// Banner is the text after the host name in the greeting.
	Banner string `set:"banner" default:"svc"`
	// RelayHosts lists the clients that may relay anywhere.
	RelayHosts settings.CIDRs `set:"relay_hosts" default:"[\"127.0.0.1\",\"::1\"]"`
	// MaxConnections is the number of live sessions above which connections are refused.
	MaxConnections int `set:"max_connections" default:"32768"`
	// ClientTimeout is how long the client may be silent, how long a command may take from its first byte to its end,
	// and how long the client may leave a reply unread.
	ClientTimeout settings.Duration `set:"client_timeout" default:"1m"`
	// DataProcessingTimeout limits what happens between the end of the content and the reply.
	DataProcessingTimeout settings.Duration `set:"data_processing_timeout" default:"5m"`
	// MaxMessagesPerConnection is the number of recipients one connection may have accepted.
	MaxMessagesPerConnection int `set:"max_messages_per_connection" default:"10000"`
	// MaxRecipientsPerMessage is the number of recipients in one transaction.
	MaxRecipientsPerMessage int `set:"max_recipients_per_message" default:"1024"`
	// MaxMessageSize is the largest content in bytes.
	MaxMessageSize settings.Size `set:"max_message_size" default:"20971520"`
	// DataBufferSize is the most bytes that one read of content asks for.
	DataBufferSize settings.Size `set:"data_buffer_size" default:"131072"`
	// LineLengthHardLimit is the longest line in bytes without CRLF, for commands and content.
	LineLengthHardLimit int `set:"line_length_hard_limit" default:"998"`
	// InvalidLineEndings says what happens to content with a lone CR or LF.
	InvalidLineEndings LineEndings `set:"invalid_line_endings" default:"Deny"`
	// BatchHandling says how a transaction becomes messages when no event decides.
	BatchHandling BatchHandling `set:"batch_handling" default:"BifurcateAlways"`
	// TLSCertificate and TLSPrivateKey are PEM. Unset means a self-signed certificate. They are read again after five
	// minutes.
	TLSCertificate settings.KeySource `set:"tls_certificate"`
	TLSPrivateKey  settings.KeySource `set:"tls_private_key"`
	// TraceHeaders says which headers are put before the content.
	TraceHeaders mail.TraceHeaders `set:"trace_headers"`
	// Meta is put into the connection metadata of every session.
	Meta map[string]any `set:"meta"`

	// Source is the place of declaration, such as "policy.lua:12", for error texts.
	Source string
}

// LineEndings says what happens to content with a lone CR or LF (flows SM-34).
type LineEndings string

// Values of [LineEndings].
const (
	DenyEndings  LineEndings = "Deny"
	AllowEndings LineEndings = "Allow"
	FixEndings   LineEndings = "Fix"
)

// Values lists the accepted values.
func (LineEndings) Values() []string { return []string{"Deny", "Allow", "Fix"} }

// BatchHandling says how the recipients of a transaction are put into messages (flows SM-36).
type BatchHandling string

// Values of [BatchHandling].
const (
	BifurcateAlways BatchHandling = "BifurcateAlways"
	BatchByDomain   BatchHandling = "BatchByDomain"
)

// Values lists the accepted values.
func (BatchHandling) Values() []string { return []string{"BifurcateAlways", "BatchByDomain"} }

// Refused names the settings that are known and not served yet.
func (Config) Refused() map[string]string {
	const notYet = "not served yet"
	return map[string]string{
		"peer": notYet, "via": notYet, "deferred_queue": notYet, "deferred_spool": notYet, "allow_xclient": notYet,
		"require_proxy_protocol": notYet, "tls_required_client_ca": notYet,
	}
}

// maxLineLimit is the largest line_length_hard_limit: a line is kept in memory.
const maxLineLimit = 1 << 20

// Validate checks what types cannot say.
func (c *Config) Validate() error {
	if _, err := netip.ParseAddrPort(c.Listen); err != nil {
		return settings.Fault("listen", `want "ip:port", for example "127.0.0.1:25" or "[::1]:25"`)
	}
	switch {
	case !safeText(c.Hostname) || !safeText(c.Banner):
		return settings.Fault("hostname", "host name and banner must not hold control characters")
	case c.MaxConnections < 1:
		return settings.Fault("max_connections", "must be at least 1")
	case c.ClientTimeout.D() < time.Millisecond:
		return settings.Fault("client_timeout", "must be positive")
	case c.DataProcessingTimeout.D() < time.Millisecond:
		return settings.Fault("data_processing_timeout", "must be positive")
	case c.MaxMessagesPerConnection < 1:
		return settings.Fault("max_messages_per_connection", "must be at least 1")
	case c.MaxRecipientsPerMessage < 1:
		return settings.Fault("max_recipients_per_message", "must be at least 1")
	case c.MaxMessageSize < 1 || c.MaxMessageSize > 2<<30:
		return settings.Fault("max_message_size", "must be between 1 byte and 2 GiB")
	case c.DataBufferSize < 512 || c.DataBufferSize > 64<<20:
		return settings.Fault("data_buffer_size", "must be between 512 bytes and 64 MiB")
	case c.LineLengthHardLimit < 78 || c.LineLengthHardLimit > maxLineLimit:
		return settings.Fault("line_length_hard_limit", "must be between 78 and 1048576")
	case c.TLSCertificate.IsZero() != c.TLSPrivateKey.IsZero():
		return settings.Fault("tls_certificate", "tls_certificate and tls_private_key go together")
	case !validHeaderName(c.TraceHeaders.HeaderName):
		return settings.Fault("trace_headers.header_name", "is no header name")
	}
	for key, v := range c.Meta {
		if err := mta.CheckMetaValue(v); err != nil {
			return settings.Fault("meta."+key, "%v", err)
		}
	}
	return nil
}

func safeText(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

// validHeaderName checks a field name (RFC 5322 section 2.2) short enough for one line.
func validHeaderName(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == ':' {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

// ListenerDomain says what is accepted for or from a domain: the settings of make_listener_domain (settings.tsv). The
// zero value allows nothing.
type ListenerDomain struct {
	// RelayTo accepts mail to the domain from anyone (flows RL-3).
	RelayTo bool `set:"relay_to" default:"false"`
	// RelayFrom lists the clients that may send from the domain to anywhere (flows RL-2).
	RelayFrom settings.CIDRs `set:"relay_from"`
	// LogARF and LogOOB are served as Ignore only: see [ReportHandling].
	LogARF ReportHandling `set:"log_arf"`
	LogOOB ReportHandling `set:"log_oob"`
}

// ReportHandling says what happens to reports that are addressed to a domain. The zero value is Ignore, which is the
// only one that is served yet; false means the same.
type ReportHandling struct{}

// UnmarshalSetting accepts "Ignore" and false.
func (r *ReportHandling) UnmarshalSetting(v any) error {
	switch v {
	case false, "Ignore":
		return nil
	case true, "LogThenRelay", "LogThenDrop":
		return settings.Fault("", "logging of reports is not served yet")
	}
	return settings.Expected("Ignore, LogThenRelay, LogThenDrop or a bool", v)
}

// MarshalSetting gives "Ignore".
func (ReportHandling) MarshalSetting() any { return "Ignore" }

// SettingType is "enum|bool".
func (ReportHandling) SettingType() string { return "enum|bool" }
