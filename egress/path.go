package egress

import (
	"time"

	"example.com/svc/mta/limit"
)

// pathState is a config with what follows from it for one ready queue. It is immutable.
type pathState struct {
	c       *PathConfig
	loaded  time.Time
	epoch   uint64
	ttl     time.Duration // of a lease
	limits  []limit.NamedLimit
	rates   []limit.Named
	choice  []limit.Named // selection rates
	connect string        // key of the connection rate
	label   string        // provider of metrics
}

// newPathState works c out for the ready queue called name at site.
func newPathState(c *PathConfig, name, site string, now time.Time, epoch uint64) *pathState {
	p := &pathState{c: c, loaded: now, epoch: epoch, ttl: c.leaseTTL(), label: c.ProviderName,
		connect: name + "-connection-rate"}
	if p.label == "" {
		p.label = site // flows MT-3
	}
	p.limits = append(p.limits, limit.NamedLimit{Key: builtinPrefix + "connection_limit." + name, Limit: c.ConnectionLimit})
	for key, l := range c.AdditionalConnectionLimits {
		p.limits = append(p.limits, limit.NamedLimit{Key: key, Limit: l})
	}
	limit.SortLimits(p.limits) // RQ-5: ascending
	p.rates = named(builtinPrefix+"max_message_rate."+name, c.MaxMessageRate, c.AdditionalMessageRates)
	p.choice = named(builtinPrefix+"source_selection_rate."+name, c.SourceSelectionRate, c.AdditionalSelectionRates)
	return p
}

// named lists rates in the order they are asked (flows RQ-11, SS-6).
func named(key string, own *limit.Rate, more map[string]limit.Rate) []limit.Named {
	var rs []limit.Named
	if own != nil {
		rs = append(rs, limit.Named{Key: key, Rate: *own})
	}
	for k, r := range more {
		rs = append(rs, limit.Named{Key: k, Rate: r})
	}
	limit.SortRates(rs)
	return rs
}

// old reports whether the config is to be asked for again (flows RQ-14).
func (p *pathState) old(now time.Time, epoch uint64) bool {
	if p.c.RefreshStrategy == RefreshEpoch {
		return p.epoch != epoch
	}
	return now.Sub(p.loaded) >= p.c.RefreshInterval.D()
}
