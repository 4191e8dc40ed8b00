package queue

import (
	"time"

	"example.com/svc/mta"
	"example.com/svc/mta/limit"
	"example.com/svc/mta/settings"
)

// Config is what a scheduled queue obeys (settings make_queue_config). A value that was given to a queue is read-only.
// Go callers begin with settings.New[Config].
type Config struct {
	// EgressPool is the pool the queue sends through.
	EgressPool string `set:"egress_pool" default:"unspecified"`
	// MaxAge is how long a message may stay before it expires; messages with an expiry of their own ignore it.
	MaxAge settings.Duration `set:"max_age" default:"7d"`
	// MaxMessageRate limits how fast messages leave the queue. Unset means no limit.
	MaxMessageRate *limit.Rate `set:"max_message_rate"`
	// MaxRetryInterval bounds the growth of the retry interval. Unset means no bound.
	MaxRetryInterval *settings.Duration `set:"max_retry_interval"`
	// RetryInterval is the delay after the first failed attempt; it doubles with each further one.
	RetryInterval settings.Duration `set:"retry_interval" default:"20m"`
	// ReapInterval is how long an empty queue without inserts is kept.
	ReapInterval settings.Duration `set:"reap_interval" default:"10m"`
	// RefreshInterval is how often the configuration is asked for again with the strategy Ttl.
	RefreshInterval settings.Duration `set:"refresh_interval" default:"1m"`
	// RefreshStrategy says when the configuration is asked for again.
	RefreshStrategy RefreshStrategy `set:"refresh_strategy" default:"Ttl"`
	// ShrinkPolicy says what leaves the memory when a message is scheduled. Of the entries whose interval is not above
	// the time until the message is due the last one counts; without one it is ShrinkDataAndMeta.
	ShrinkPolicy []ShrinkStep `set:"shrink_policy"`
	// Strategy is the structure that keeps scheduled messages.
	Strategy Strategy `set:"strategy" default:"SingletonTimerWheel"`
	// Protocol says how messages are delivered; exactly one is set.
	Protocol Protocol `set:"protocol" default:"{\"smtp\":{}}"`
}

// Refused names settings that are not served yet.
func (Config) Refused() map[string]string {
	return map[string]string{
		"timerwheel_tick_interval": "not served yet: there is no timer wheel per queue",
		"provider_name":            "not served yet here: set it on the egress path",
	}
}

// Validate reports what the fields allow and the queue cannot obey.
func (c *Config) Validate() error {
	switch {
	case c.EgressPool == "":
		return settings.Fault("egress_pool", "is empty")
	case c.MaxAge <= 0:
		return settings.Fault("max_age", "has to be above 0")
	case c.RetryInterval <= 0:
		return settings.Fault("retry_interval", "has to be above 0")
	case c.MaxRetryInterval != nil && *c.MaxRetryInterval <= 0:
		return settings.Fault("max_retry_interval", "has to be above 0")
	case c.Strategy == TimerWheel || c.Strategy == SkipList:
		return settings.Fault("strategy", "%s is not served yet, want %s", c.Strategy, SingletonTimerWheel)
	}
	return c.Protocol.Validate()
}

// RefreshStrategy says when a configuration is asked for again.
type RefreshStrategy string

// Refresh strategies.
const (
	// Ttl asks again when the refresh interval has passed.
	Ttl RefreshStrategy = "Ttl"
	// Epoch asks again when the configuration epoch has changed.
	Epoch RefreshStrategy = "Epoch"
)

// Values lists the strategies.
func (RefreshStrategy) Values() []string { return []string{string(Ttl), string(Epoch)} }

// Strategy is a structure that keeps scheduled messages.
type Strategy string

// Strategies. The singleton ones are one wheel for all queues; the others are refused.
const (
	SingletonTimerWheel   Strategy = "SingletonTimerWheel"
	SingletonTimerWheelV2 Strategy = "SingletonTimerWheelV2"
	TimerWheel            Strategy = "TimerWheel"
	SkipList              Strategy = "SkipList"
)

// Values lists the strategies.
func (Strategy) Values() []string {
	return []string{string(SingletonTimerWheel), string(SingletonTimerWheelV2), string(TimerWheel), string(SkipList)}
}

// Shrink says what leaves the memory.
type Shrink string

// Shrink policies.
const (
	ShrinkDataAndMeta Shrink = "ShrinkDataAndMeta"
	ShrinkData        Shrink = "ShrinkData"
	NoShrink          Shrink = "NoShrink"
)

// Values lists the policies.
func (Shrink) Values() []string {
	return []string{string(ShrinkDataAndMeta), string(ShrinkData), string(NoShrink)}
}

// ShrinkStep is one entry of [Config].ShrinkPolicy.
type ShrinkStep struct {
	// Interval is compared with the time until a message is due.
	Interval settings.Duration `set:"interval" required:"true"`
	// Policy is what is released.
	Policy Shrink `set:"policy" required:"true"`
}

// Protocol says how messages of a queue are delivered. Exactly one field is set.
type Protocol struct {
	// SMTP delivers to the MX hosts of the domain, or to a list of hosts.
	SMTP *SMTP `set:"smtp"`
}

// Refused names protocols that are not served yet.
func (Protocol) Refused() map[string]string {
	return map[string]string{
		"maildir_path": "not served yet: delivery into a maildir",
		"dir_mode":     "not served yet: delivery into a maildir",
		"file_mode":    "not served yet: delivery into a maildir",
		"custom_lua":   "not served yet: delivery through a script",
		"xfer":         "not served yet: transfer to another node",
	}
}

// Validate checks that there is exactly one protocol.
func (p *Protocol) Validate() error {
	if p.SMTP == nil {
		return settings.Fault("protocol", "names no protocol, want {smtp={}}")
	}
	if p.SMTP.TreatMXListAsSecure {
		return settings.Fault("smtp.treat_mx_list_as_secure", "is not served yet: there is no DANE for it to allow")
	}
	return nil
}

// SMTP is delivery over SMTP.
type SMTP struct {
	// MXList replaces the MX lookup; the hosts are tried in order. Empty means MX lookup.
	MXList []MXHost `set:"mx_list"`
	// TreatMXListAsSecure says that the list may be trusted as validated DNS is, so that DANE may apply.
	TreatMXListAsSecure bool `set:"treat_mx_list_as_secure" default:"false"`
}

// defaultConfig is what a queue obeys when no policy says otherwise.
func defaultConfig() *Config {
	c := settings.New[Config]()
	return &c
}

// Names of internal queues with settings of their own (flows SQ-3, SM-51).
const (
	generatorQueue      = "generator" + mta.InternalSuffix
	deferredInjectQueue = "deferred_smtp_inject" + mta.InternalSuffix
)

// internalConfig is what the queue of an internal name obeys (flows SQ-3, SM-51).
func internalConfig(name mta.QueueName) *Config {
	c := defaultConfig()
	c.RetryInterval = settings.Duration(10 * time.Second)
	if name.Domain == deferredInjectQueue {
		c.RetryInterval = settings.Duration(time.Minute)
	}
	if name.Domain == mta.NullQueue {
		c.MaxRetryInterval = &c.RetryInterval
	}
	return c
}
