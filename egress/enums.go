package egress

import "example.com/svc/mta/dns"

// TLSMode says when STARTTLS is used (flows TL-1).
type TLSMode string

// The modes.
const (
	// TLSOpportunistic uses TLS where offered; the certificate must verify, or the host is not used.
	TLSOpportunistic TLSMode = "Opportunistic"
	// TLSOpportunisticInsecure uses TLS where offered, verifies nothing and goes on in clear text when it fails.
	TLSOpportunisticInsecure TLSMode = "OpportunisticInsecure"
	// TLSRequired uses TLS with a certificate that verifies, or not the host.
	TLSRequired TLSMode = "Required"
	// TLSRequiredInsecure uses TLS without verifying, or not the host.
	TLSRequiredInsecure TLSMode = "RequiredInsecure"
	// TLSDisabled never uses TLS.
	TLSDisabled TLSMode = "Disabled"
)

// Values lists the modes.
func (TLSMode) Values() []string {
	return []string{string(TLSOpportunistic), string(TLSOpportunisticInsecure), string(TLSRequired),
		string(TLSRequiredInsecure), string(TLSDisabled)}
}

// Opportunistic reports whether the mode goes without TLS where it is not offered.
func (m TLSMode) Opportunistic() bool { return m == TLSOpportunistic || m == TLSOpportunisticInsecure }

// Insecure reports whether the mode takes any certificate.
func (m TLSMode) Insecure() bool { return m == TLSOpportunisticInsecure || m == TLSRequiredInsecure }

// IPStrategy says which addresses of a host are used.
type IPStrategy string

// Values lists the strategies.
func (IPStrategy) Values() []string {
	return []string{"Ipv4AndIpv6", "Ipv4Only", "Ipv6Only", "Ipv6ThenIpv4", "Ipv4ThenIpv6"}
}

func (s IPStrategy) dns() dns.Strategy {
	var d dns.Strategy
	if d.UnmarshalText([]byte(s)) != nil {
		return dns.Ipv4AndIpv6
	}
	return d
}

// ReconnectStrategy says where to connect to after a connection broke while a message was sent (flows SC-26).
type ReconnectStrategy string

// The strategies.
const (
	// TerminateSession ends the session.
	TerminateSession ReconnectStrategy = "TerminateSession"
	// ReconnectSameHost tries the same address again.
	ReconnectSameHost ReconnectStrategy = "ReconnectSameHost"
	// ConnectNextHost goes on with the next address of the plan.
	ConnectNextHost ReconnectStrategy = "ConnectNextHost"
)

// Values lists the strategies.
func (ReconnectStrategy) Values() []string {
	return []string{string(TerminateSession), string(ReconnectSameHost), string(ConnectNextHost)}
}

// WakeupStrategy says how eagerly an insert wakes what serves the ready queue.
type WakeupStrategy string

// The strategies. For sessions, Aggressive wakes as many idle ones as messages wait, Relaxed one at a time. For the
// care of a ready queue, Aggressive is at each insert, Relaxed when there are fewer sessions than there should be.
const (
	WakeAggressive WakeupStrategy = "Aggressive"
	WakeRelaxed    WakeupStrategy = "Relaxed"
)

// Values lists the strategies.
func (WakeupStrategy) Values() []string { return []string{string(WakeAggressive), string(WakeRelaxed)} }

// RefreshStrategy says what makes a config old.
type RefreshStrategy string

// The strategies.
const (
	// RefreshTTL asks again when refresh_interval has passed.
	RefreshTTL RefreshStrategy = "Ttl"
	// RefreshEpoch asks again when the configuration epoch has changed.
	RefreshEpoch RefreshStrategy = "Epoch"
)

// Values lists the strategies.
func (RefreshStrategy) Values() []string { return []string{string(RefreshTTL), string(RefreshEpoch)} }
