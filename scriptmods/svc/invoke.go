package svc

import (
	"context"
	"fmt"

	"example.com/svc/egress"
	"example.com/svc/mta"
	"example.com/svc/mta/mail"
	"example.com/svc/mta/settings"
	"example.com/svc/queue"
	"example.com/svc/script"
)

// invokeFuncs ask the events of the policy as the subsystems do, without their caches.
func (m *module) invokeFuncs() []script.Func {
	return []script.Func{
		script.Fn("invoke_get_queue_config", "Asks get_queue_config for the settings of a scheduled queue.", m.queueConfig,
			"queue_name"),
		script.Fn("invoke_get_egress_path_config", "Asks get_egress_path_config for the settings of an egress path.",
			m.pathConfig, "routing_domain", "egress_source", "site_name"),
		script.Fn("invoke_get_egress_pool", "Asks get_egress_pool for a pool, and get_egress_source for each source in it.",
			m.pool, "pool_name"),
		script.Fn("invoke_get_egress_source", "Asks get_egress_source for a source.", m.source, "source_name"),
		script.Fn("apply_supplemental_trace_header", "Adds the header that lets reports be matched with what was sent.",
			supplemental, "msg", "params?"),
	}
}

func (m *module) queueConfig(ctx context.Context, name string) (*queue.Config, error) {
	q := mta.ParseQueueName(name)
	c, _, err := queue.GetConfig.Call(ctx, m.bus, q)
	if err == nil && c == nil {
		def := settings.New[queue.Config]()
		c = &def
	}
	return c, err
}

func (m *module) pathConfig(ctx context.Context, domain, source, site string) (*egress.PathConfig, error) {
	c, _, err := egress.GetPathConfig.Call(ctx, m.bus, egress.PathArgs{RoutingDomain: domain, Source: source, Site: site})
	if err == nil && c == nil {
		def := settings.New[egress.PathConfig]()
		c = &def
	}
	return c, err
}

func (m *module) pool(ctx context.Context, name string) (*egress.Pool, error) {
	if name == egress.Unspecified {
		p := settings.New(func(p *egress.Pool) {
			p.Name, p.Entries = name, []egress.PoolEntry{{Name: name, Weight: 1}}
		})
		return &p, nil
	}
	p, _, err := egress.GetPool.Call(ctx, m.bus, name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, fmt.Errorf("get_egress_pool knows no pool %q", name)
	}
	for _, e := range p.Entries {
		if _, err := m.source(ctx, e.Name); err != nil {
			return nil, fmt.Errorf("pool %q: %w", name, err)
		}
	}
	return p, nil
}

func (m *module) source(ctx context.Context, name string) (*egress.Source, error) {
	if name == egress.Unspecified {
		s := settings.New(func(s *egress.Source) { s.Name = name })
		return &s, nil
	}
	s, _, err := egress.GetSource.Call(ctx, m.bus, name)
	if err == nil && s == nil {
		err = fmt.Errorf("get_egress_source knows no source %q", name)
	}
	return s, err
}

// supplemental adds the header of flows SM-48, unless params turns it off.
func supplemental(ctx context.Context, msg *mta.Message, params mail.TraceHeaders) error {
	if !params.SupplementalHeader {
		return nil
	}
	meta, err := msg.Meta(ctx)
	if err != nil {
		return err
	}
	var to []string
	for _, r := range msg.Envelope().Recipients {
		to = append(to, r.String())
	}
	if err := mail.CheckField(params.HeaderName, ""); err != nil {
		return err
	}
	h, err := mail.AppendSupplemental(nil, params.HeaderName, to, params.IncludeMetaNames, meta.Get)
	if err != nil {
		return err
	}
	return msg.Prepend(ctx, h)
}
