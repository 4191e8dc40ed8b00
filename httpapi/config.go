package httpapi

import (
	"errors"

	"example.com/svc/mta/settings"
)

// Config is what one HTTP listener obeys (settings start_http_listener). Begin with settings.New[Config].
type Config struct {
	// Hostname is the name of the listener in certificates and metadata. Unset means the host name of the machine.
	Hostname string `set:"hostname"`
	// Listen is the address to bind.
	Listen settings.AddrPort `set:"listen" default:"127.0.0.1:8000"`
	// RequestBodyLimit is the largest request body in bytes, after decompression.
	RequestBodyLimit settings.Size `set:"request_body_limit" default:"2097152"`
	// TrustedHosts are peers that join the group svc:http-listener-trusted-ip.
	TrustedHosts settings.CIDRs `set:"trusted_hosts" default:"[\"127.0.0.1\",\"::1\"]"`

	// Source is the place of declaration, for error texts. It is not a setting.
	Source string
}

// Refused names settings that are not served yet.
func (Config) Refused() map[string]string {
	const why = "not served yet: listeners speak http only; put a TLS proxy in front or bind to loopback"
	return map[string]string{"use_tls": why, "tls_certificate": why, "tls_private_key": why}
}

// Validate reports what the fields allow and a listener cannot obey.
func (c *Config) Validate() error {
	if !c.Listen.IsValid() {
		return errors.New("listen: no address")
	}
	if c.RequestBodyLimit == 0 {
		return settings.Fault("request_body_limit", "has to be above 0")
	}
	return nil
}
