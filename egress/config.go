package egress

import (
	"strings"
	"time"

	"example.com/svc/mta/limit"
	"example.com/svc/mta/settings"
)

// PathConfig is what a ready queue and its sessions obey: the settings of make_egress_path. Make it with
// settings.New; it is immutable once in use.
type PathConfig struct {
	// ConnectionLimit is how many connections a source may have to a site.
	ConnectionLimit limit.Limit `set:"connection_limit" default:"32"`
	// AdditionalConnectionLimits are further limits, shared by every path that uses the name.
	AdditionalConnectionLimits map[string]limit.Limit `set:"additional_connection_limits"`
	// MaxConnectionRate limits how often connections are opened. Unset means no limit.
	MaxConnectionRate *limit.Rate `set:"max_connection_rate"`
	// MaxMessageRate limits how often messages are sent. Unset means no limit.
	MaxMessageRate *limit.Rate `set:"max_message_rate"`
	// AdditionalMessageRates are further rates, shared by every path that uses the name.
	AdditionalMessageRates map[string]limit.Rate `set:"additional_message_rate_throttles"`
	// SourceSelectionRate limits how often the source is chosen for the site. Unset means no limit.
	SourceSelectionRate *limit.Rate `set:"source_selection_rate"`
	// AdditionalSelectionRates are further rates of choosing, shared by every path that uses the name.
	AdditionalSelectionRates map[string]limit.Rate `set:"additional_source_selection_rates"`
	// MaxDeliveries is the number of messages tried over one connection.
	MaxDeliveries int `set:"max_deliveries_per_connection" default:"1024"`
	// MaxReady is the capacity of the ready queue.
	MaxReady int `set:"max_ready" default:"1024"`
	// MaxRecipients is the number of recipients of one transaction.
	MaxRecipients int `set:"max_recipients_per_batch" default:"100"`
	// FailuresBeforeDelay is how many connection plans may fail in a row before all ready messages are delayed.
	FailuresBeforeDelay int `set:"consecutive_connection_failures_before_delay" default:"100"`

	// ConnectTimeout is for establishing a connection, without the banner.
	ConnectTimeout settings.Duration `set:"connect_timeout" default:"60s"`
	// BannerTimeout is for the greeting of the peer.
	BannerTimeout settings.Duration `set:"banner_timeout" default:"60s"`
	// EHLOTimeout is for the reply to EHLO.
	EHLOTimeout settings.Duration `set:"ehlo_timeout" default:"300s"`
	// StartTLSTimeout is for the reply to STARTTLS, and again for the handshake.
	StartTLSTimeout settings.Duration `set:"starttls_timeout" default:"5s"`
	// MailFromTimeout is for the reply to MAIL.
	MailFromTimeout settings.Duration `set:"mail_from_timeout" default:"300s"`
	// RcptToTimeout is for the reply to RCPT.
	RcptToTimeout settings.Duration `set:"rcpt_to_timeout" default:"300s"`
	// DataTimeout is for the reply to DATA, and for each piece of the content to be taken by the peer.
	DataTimeout settings.Duration `set:"data_timeout" default:"300s"`
	// DataDotTimeout is for the reply to the final dot (RFC 5321 section 4.5.3.2.6).
	DataDotTimeout settings.Duration `set:"data_dot_timeout" default:"600s"`
	// RsetTimeout is for the reply to RSET.
	RsetTimeout settings.Duration `set:"rset_timeout" default:"5s"`
	// IdleTimeout is how long a connection without a message is kept; longer waits for a rate send messages back.
	IdleTimeout settings.Duration `set:"idle_timeout" default:"60s"`
	// ShutdownTimeout is how long deliveries may go on after shutdown began. Unset is the sum of the timeouts of MAIL,
	// RCPT, DATA and the dot.
	ShutdownTimeout *settings.Duration `set:"system_shutdown_timeout"`
	// WatchdogTimeout is how long a session may be without progress. Unset is derived.
	WatchdogTimeout *settings.Duration `set:"dispatcher_progress_watchdog_timeout"`

	// EHLODomain is the name this host goes by. Empty takes that of the source, or the host name.
	EHLODomain string `set:"ehlo_domain"`
	// EnableTLS says when STARTTLS is used.
	EnableTLS TLSMode `set:"enable_tls" default:"Opportunistic"`
	// ReconnectWithoutTLS makes the opportunistic modes connect again without TLS after a failed handshake.
	ReconnectWithoutTLS bool `set:"opportunistic_tls_reconnect_on_failed_handshake" default:"false"`
	// RememberBrokenTLS is how long a failed handshake makes the opportunistic modes of this path skip STARTTLS.
	RememberBrokenTLS *settings.Duration `set:"remember_broken_tls"`
	// EnablePipelining uses PIPELINING where it is offered.
	EnablePipelining bool `set:"enable_pipelining" default:"true"`
	// EnableRset sends RSET between the messages of a connection.
	EnableRset bool `set:"enable_rset" default:"true"`
	// Ignore8Bit sends 8-bit content and addresses to peers that do not offer to take them.
	Ignore8Bit bool `set:"ignore_8bit_checks" default:"false"`
	// IPLookup says which addresses of a host are used.
	IPLookup IPStrategy `set:"ip_lookup_strategy" default:"Ipv4AndIpv6"`
	// ProhibitedHosts fails all messages of a path when an address of its plan is in one of the blocks.
	ProhibitedHosts settings.CIDRs `set:"prohibited_hosts" default:"[\"127.0.0.0/8\",\"0.0.0.0\",\"::1\",\"::\"]"`
	// SkipHosts leaves addresses out of plans.
	SkipHosts settings.CIDRs `set:"skip_hosts"`
	// SMTPPort is the port to connect to when neither source nor plan names one.
	SMTPPort uint16 `set:"smtp_port" default:"25"`
	// Reconnect says where to connect to after a connection broke.
	Reconnect ReconnectStrategy `set:"reconnect_strategy" default:"ConnectNextHost"`
	// TryNextHost tries a message at once on the next host after a transport error.
	TryNextHost bool `set:"try_next_host_on_transport_error" default:"false"`
	// DispatcherWakeup says how many idle sessions are woken for waiting messages.
	DispatcherWakeup WakeupStrategy `set:"dispatcher_wakeup_strategy" default:"Aggressive"`
	// MaintainerWakeup says when a ready queue is looked after.
	MaintainerWakeup WakeupStrategy `set:"maintainer_wakeup_strategy" default:"Aggressive"`
	// RefreshInterval is the age at which the config is asked for again.
	RefreshInterval settings.Duration `set:"refresh_interval" default:"60s"`
	// RefreshStrategy says what makes a config old.
	RefreshStrategy RefreshStrategy `set:"refresh_strategy" default:"Ttl"`
	// ProviderName is the provider label of metrics. Empty takes the site name.
	ProviderName string `set:"provider_name"`

	// EnableDANE, EnableMTASTS, UseLMTP and PreferOpenSSL may be given as false, which is how things are; true is
	// refused. The documented default of enable_mta_sts counts once policies are looked up.
	EnableDANE    *bool `set:"enable_dane"`
	EnableMTASTS  *bool `set:"enable_mta_sts"`
	UseLMTP       *bool `set:"use_lmtp"`
	PreferOpenSSL *bool `set:"tls_prefer_openssl"`
}

// Refused names the settings that are not served.
func (PathConfig) Refused() map[string]string {
	const (
		auth   = "is not served yet: the SMTP client does not authenticate"
		cert   = "is not served yet: the SMTP client presents no certificate"
		memory = "is not served yet: memory is not watched"
		ssl    = "is not served: TLS is that of the Go library, which chooses cipher suites itself"
	)
	return map[string]string{
		"smtp_auth_plain_username":                        auth,
		"smtp_auth_plain_password":                        auth,
		"auth_timeout":                                    auth,
		"allow_smtp_auth_plain_without_tls":               auth,
		"allow_smtp_auth_plain_without_valid_certificate": auth,
		"tls_certificate":                                 cert,
		"tls_private_key":                                 cert,
		"low_memory_reduction_policy":                     memory,
		"no_memory_reduction_policy":                      memory,
		"openssl_cipher_list":                             ssl,
		"openssl_cipher_suites":                           ssl,
		"openssl_options":                                 ssl,
		"rustls_cipher_suites":                            ssl,
	}
}

// Validate refuses values that cannot be obeyed.
func (c *PathConfig) Validate() error {
	for _, v := range []struct {
		name string
		n    int
	}{
		{"max_deliveries_per_connection", c.MaxDeliveries},
		{"max_ready", c.MaxReady},
		{"max_recipients_per_batch", c.MaxRecipients},
	} {
		if v.n < 1 {
			return settings.Fault(v.name, "must be at least 1, got %d", v.n)
		}
	}
	if c.FailuresBeforeDelay < 0 {
		return settings.Fault("consecutive_connection_failures_before_delay", "must not be negative")
	}
	if c.SMTPPort == 0 {
		return settings.Fault("smtp_port", "must be 1 to 65535")
	}
	if err := c.validateTimeouts(); err != nil {
		return err
	}
	if err := c.validateNames(); err != nil {
		return err
	}
	return c.validateUnserved()
}

func (c *PathConfig) validateTimeouts() error {
	for _, v := range []struct {
		name string
		d    settings.Duration
	}{
		{"connect_timeout", c.ConnectTimeout}, {"banner_timeout", c.BannerTimeout}, {"ehlo_timeout", c.EHLOTimeout},
		{"starttls_timeout", c.StartTLSTimeout}, {"mail_from_timeout", c.MailFromTimeout},
		{"rcpt_to_timeout", c.RcptToTimeout}, {"data_timeout", c.DataTimeout}, {"data_dot_timeout", c.DataDotTimeout},
		{"rset_timeout", c.RsetTimeout}, {"refresh_interval", c.RefreshInterval},
	} {
		if v.d <= 0 {
			return settings.Fault(v.name, "must be greater than 0")
		}
	}
	return nil
}

// validateNames keeps the names of this package out of the shared ones: they begin with "svc.".
func (c *PathConfig) validateNames() error {
	for name := range c.AdditionalConnectionLimits {
		if strings.HasPrefix(name, builtinPrefix) {
			return settings.Fault("additional_connection_limits", "the name %q begins with %q", name, builtinPrefix)
		}
	}
	for name := range c.AdditionalMessageRates {
		if strings.HasPrefix(name, builtinPrefix) {
			return settings.Fault("additional_message_rate_throttles", "the name %q begins with %q", name, builtinPrefix)
		}
	}
	return nil
}

func (c *PathConfig) validateUnserved() error {
	for _, v := range []struct {
		name, reason string
		b            *bool
	}{
		{"enable_dane", "is not served yet: there is no validating resolver", c.EnableDANE},
		{"enable_mta_sts", "is not served yet: policies are not looked up", c.EnableMTASTS},
		{"use_lmtp", "is not served yet", c.UseLMTP},
		{"tls_prefer_openssl", "is not served: TLS is that of the Go library", c.PreferOpenSSL},
	} {
		if v.b != nil && *v.b {
			return settings.Fault(v.name, "true %s", v.reason)
		}
	}
	return nil
}

// builtinPrefix begins the names of limits and rates that belong to this package.
const builtinPrefix = "svc."

// shutdownTimeout is how long a delivery may go on after shutdown began.
func (c *PathConfig) shutdownTimeout() time.Duration {
	if c.ShutdownTimeout != nil {
		return c.ShutdownTimeout.D()
	}
	return c.MailFromTimeout.D() + c.RcptToTimeout.D() + c.DataTimeout.D() + c.DataDotTimeout.D()
}

// watchdogTimeout is how long a session may be without progress (flows RQ-16).
func (c *PathConfig) watchdogTimeout() time.Duration {
	if c.WatchdogTimeout != nil {
		return c.WatchdogTimeout.D()
	}
	longest := max(c.MailFromTimeout.D(), c.RcptToTimeout.D(), c.DataTimeout.D(), c.DataDotTimeout.D())
	return max(2*longest, time.Minute)
}

// leaseTTL is how long a lease of a connection lasts (flows RQ-6).
func (c *PathConfig) leaseTTL() time.Duration {
	return (c.ConnectTimeout + c.BannerTimeout + c.EHLOTimeout + c.StartTLSTimeout + c.MailFromTimeout +
		c.RcptToTimeout + c.DataTimeout + c.DataDotTimeout + c.IdleTimeout).D()
}

// defaultPath is what a path obeys when no policy says otherwise.
func defaultPath() *PathConfig {
	c := settings.New[PathConfig]()
	return &c
}
