package egress

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/svc/egress/route"
	"example.com/svc/mta"
	"example.com/svc/queue"
)

// defaultBrokenTLS is how long a failed handshake is remembered where the path connects again without TLS and says
// nothing else (flows TL-9).
const defaultBrokenTLS = 15 * time.Minute

// connect makes sure of a connection for the ticket in hand. False when the session ends; the ticket is then dealt with.
func (d *dispatcher) connect() bool {
	if d.carrier != nil {
		if !d.rested {
			return true
		}
		d.rested = false
		if d.carrier.Check(d.ctx) == nil {
			return true
		}
		d.broken() // flows SC-13
	}
	if d.carrier == nil && d.planned && d.at >= len(d.targets) && d.sent {
		d.toFront() // flows SC-13, SC-26: no failure, another session goes on
		return false
	}
	if !d.planned && !d.makePlan() {
		return false
	}
	return d.tryTargets()
}

// toFront puts the ticket in hand back into the ready queue.
func (d *dispatcher) toFront() {
	if d.q.putBack(d.ticket) {
		d.ticket = nil
		return
	}
	d.giveBack(queue.Return{Context: contextShutdown, HasDelay: true})
}

// broken drops a connection that broke, and works out where to go on (flows SC-26).
func (d *dispatcher) broken() {
	d.disconnect()
	switch d.q.state.Load().c.Reconnect {
	case ReconnectSameHost:
		d.at--
		d.targets[d.at] = d.target
	case TerminateSession:
		d.at = len(d.targets)
	}
}

// disconnect closes the connection, if there is one.
func (d *dispatcher) disconnect() {
	if d.carrier == nil {
		return
	}
	d.enter(Closing)
	if err := d.carrier.Close(); err != nil {
		d.q.m.log.Debug("close of a connection", "queue", d.q.name, "err", err)
	}
	d.carrier, d.delivered, d.rested = nil, 0, false
	d.uncount()
}

// makePlan resolves the hosts of the site into targets (flows SC-3 to SC-5). Its failures concern all that wait.
func (d *dispatcher) makePlan() bool {
	q := d.q
	d.enter(AttemptingConnection)
	plan := d.currentPlan()
	c := q.state.Load().c
	if plan.NullMX {
		d.all(mta.Response{Code: 556, Enhanced: mta.EnhancedCode{Class: 5, Subject: 1, Detail: 10},
			Content: mta.InternalPrefix + "the domain takes no mail: it has a null MX"}, mta.Failed)
		return false
	}
	ctx, cancel := d.connecting()
	targets, err := q.m.o.Planner.Targets(ctx, plan, c.IPLookup.dns())
	cancel()
	none := mta.EnhancedCode{Class: 4, Subject: 4, Detail: 4}
	switch {
	case err != nil && d.stopped():
		d.interrupted()
		return false
	case err != nil:
		d.all(mta.Internal(451, none, "MX didn't resolve to any hosts: "+safeText(err.Error())), mta.Transient)
		return false
	}
	for _, t := range targets {
		if c.ProhibitedHosts.Contains(t.Addr) { // flows SC-5
			d.all(mta.Internal(550, mta.EnhancedCode{Class: 5, Subject: 4, Detail: 4},
				fmt.Sprintf("%s has the address %s, which is on the prohibited_hosts list", t.Name, t.Addr)), mta.Failed)
			return false
		}
	}
	targets = slices.DeleteFunc(targets, func(t route.Target) bool { return c.SkipHosts.Contains(t.Addr) })
	if len(targets) == 0 {
		d.all(mta.Internal(451, none, "MX consisted solely of hosts on the skip_hosts list"), mta.Transient)
		return false
	}
	d.targets, d.at, d.planned, d.sent = targets, 0, true, false
	return true
}

// currentPlan returns the plan of the ready queue, renewed when it is old and still names the same site.
func (d *dispatcher) currentPlan() *route.Plan {
	plan := d.q.plan.Load()
	if time.Now().Before(plan.Expires) || plan.Domain == "" {
		return plan
	}
	ctx, cancel := d.connecting()
	defer cancel()
	fresh, err := d.q.m.o.Planner.Plan(ctx, d.ticket.Name.Routing())
	if err != nil || fresh.Site != plan.Site {
		return plan
	}
	d.q.plan.CompareAndSwap(plan, fresh)
	return fresh
}

// connecting is a context for what ends when shutdown begins.
func (d *dispatcher) connecting() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(d.ctx)
	stop := context.AfterFunc(d.q.m.stop, cancel)
	return ctx, func() { stop(); cancel() }
}

// stopped says that the session was aborted or that shutdown began.
func (d *dispatcher) stopped() bool { return d.ctx.Err() != nil || d.q.m.stop.Err() != nil }

// tryTargets connects to the targets that are left, in turn (flows RQ-12).
func (d *dispatcher) tryTargets() bool {
	q := d.q
	var faults []string
	for d.at < len(d.targets) {
		if !d.connectionRate() {
			return false
		}
		d.target = d.targets[d.at]
		err := d.open()
		if err == nil {
			d.at++
			q.failures.Store(0)
			return true
		}
		if d.stopped() {
			d.interrupted()
			return false
		}
		if d.retryInClear(err) {
			continue
		}
		d.at++
		faults = append(faults, fmt.Sprintf("%s (%s): %s", d.target.Name, d.target.Addr, err))
		q.m.log.Debug("connection failed", "queue", q.name, "host", d.target.Name, "addr", d.target.Addr, "err", err)
	}
	if d.sent {
		d.toFront() // flows SC-26: the next session makes a new plan
		return false
	}
	d.planFailed(faults)
	return false
}

// retryInClear remembers broken TLS, and says whether to try the same target without it (flows TL-8, TL-9).
func (d *dispatcher) retryInClear(err error) bool {
	c := d.q.state.Load().c
	if !brokenTLS(err) {
		return false
	}
	again := c.ReconnectWithoutTLS && c.EnableTLS.Opportunistic() && !d.clear
	memory := time.Duration(0)
	if c.RememberBrokenTLS != nil {
		memory = c.RememberBrokenTLS.D()
	} else if again {
		memory = defaultBrokenTLS
	}
	if memory > 0 {
		d.q.brokenTLS.Store(time.Now().Add(memory).UnixNano())
	}
	d.clear = d.clear || again
	return again
}

// connectionRate waits for the connection rate (flows SC-8).
func (d *dispatcher) connectionRate() bool {
	q := d.q
	for {
		st := q.state.Load()
		if st.c.MaxConnectionRate == nil {
			return true
		}
		res, err := q.m.o.Keeper.Take(d.ctx, st.connect, *st.c.MaxConnectionRate, 1)
		switch {
		case err != nil:
			q.m.log.Warn("connection rate not known", "queue", q.name, "err", err)
			d.internalError("connection rate not known")
			return false
		case !res.Throttled:
			return true
		case res.Wait >= st.c.IdleTimeout.D():
			d.delayAll(queue.Return{Context: queue.ConnectionRateThrottled, Delay: res.RetryAfter, HasDelay: true})
			return false
		case !d.sleep(ConnectionRateThrottled, res.Wait):
			d.interrupted()
			return false
		}
	}
}

// open makes one connection.
func (d *dispatcher) open() error {
	q := d.q
	d.enter(AttemptingConnection)
	st := q.state.Load()
	src := q.source.Load()
	p := &Path{
		Queue: q.name, Source: src, Site: q.key.site, Protocol: q.key.protocol, Target: d.target,
		Port: st.c.SMTPPort, Hello: q.m.o.Hostname,
		AvoidTLS: d.clear || q.brokenTLS.Load() > time.Now().UnixNano(),
	}
	switch { // flows SC-7
	case src.RemotePort != nil:
		p.Port = *src.RemotePort
	case d.target.Port != 0:
		p.Port = d.target.Port
	}
	switch { // flows SC-10
	case st.c.EHLODomain != "":
		p.Hello = st.c.EHLODomain
	case src.EHLODomain != "":
		p.Hello = src.EHLODomain
	}
	ctx, cancel := d.connecting()
	defer cancel()
	d.countConnection()
	c, err := q.opener.Open(ctx, p, st.c)
	if err != nil {
		d.uncount()
		return err
	}
	d.carrier, d.info, d.delivered, d.rested = c, c.Info(), 0, false
	return nil
}

// countConnection moves the gauges at the start of an attempt (flows MT-6).
func (d *dispatcher) countConnection() {
	q := d.q
	q.mu.Lock()
	d.counted = q.provider(d.ticket.Config.EgressPool)
	q.mu.Unlock()
	q.metrics.connectionsTotal.Inc()
	q.metrics.rollup.connectionsTotal.Inc()
	d.moveConnection(1)
}

func (d *dispatcher) moveConnection(n float64) {
	d.q.metrics.connections.Add(n)
	d.q.metrics.rollup.connections.Add(n)
	d.counted.connections.Add(n)
	d.counted.connsPool.Add(n)
}

func (d *dispatcher) uncount() {
	if d.counted != nil {
		d.moveConnection(-1)
		d.counted = nil
	}
}

// planFailed ends the message in hand after no target took a connection, and all that wait when this has gone on for
// long (flows RQ-12).
func (d *dispatcher) planFailed(faults []string) {
	q := d.q
	before := q.failures.Add(1) - 1
	d.fail(mta.Internal(400, mta.EnhancedCode{},
		"failed to connect to any candidate hosts: "+safeText(strings.Join(faults, ", "))))
	if before > int64(q.state.Load().c.FailuresBeforeDelay) {
		d.all(mta.Internal(451, mta.EnhancedCode{Class: 4, Subject: 4, Detail: 1},
			"No answer from any hosts listed in MX"), mta.Transient)
	}
}

// fail finishes the ticket in hand as a failed attempt.
func (d *dispatcher) fail(r mta.Response) {
	t := d.ticket
	d.ticket = nil
	d.finish(t, []mta.Result{{Response: r, Disposition: mta.Transient}})
}

// all finishes the ticket in hand, if any, and all that wait with one response.
func (d *dispatcher) all(r mta.Response, disp mta.Disposition) {
	ts := d.q.drain(0)
	if d.ticket != nil {
		ts = append([]*queue.Ticket{d.ticket}, ts...)
		d.ticket = nil
	}
	for _, t := range ts {
		d.finish(t, []mta.Result{{Response: r, Disposition: disp}})
	}
}
