package lease

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sublet/embed"
	"sublet/embed/calendar"
	"sublet/vnet"
)

// Drained is what becomes of a lease that has something on a host that is drained.
type Drained struct {
	Lease vnet.LeaseID
	Stays []string // why; none: it goes elsewhere
}

// SetHostDrained says that a host takes nothing new, or does again. What can leave
// it does: leases that have not begun are embedded anew; of running ones, links
// that pass take other paths, and routers and switches go elsewhere, before the old
// ones do where that can be (gentle). Nodes that say so are
// stopped and made anew, others stay with what runs in them. Draining again tries again.
// The error wraps ErrNoElement if there is no such host.
func (b *Book) SetHostDrained(now time.Time, name vnet.HostID, drained bool) ([]Drained, error) {
	hosts := slices.Clone(b.sub.Hosts)
	i := slices.IndexFunc(hosts, func(h vnet.SubstrateNode) bool { return h.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("host %q: %w", name, ErrNoElement)
	}
	if hosts[i].Drained != drained {
		hosts[i].Drained = drained
		b.sub.Hosts = hosts
	}
	if err := b.failover(now); err != nil || !drained {
		return nil, err
	}
	var list []Drained
	for _, e := range slices.Clone(b.live) {
		if !slices.Contains(e.hosts, name) {
			continue
		}
		why, err := b.drain(now, e, name)
		if err != nil {
			return nil, fmt.Errorf("drain %s of %s: %w", name, e.ID(), err)
		}
		list = append(list, Drained{e.ID(), why})
	}
	return list, b.Tick(now)
}

// drain takes a lease off a host, or says why it stays.
func (b *Book) drain(now time.Time, e *entry, host vnet.HostID) (why []string, err error) {
	if why := staysFor(e); why != nil {
		return why, nil
	}
	request := e.Request
	if e.onHosts() {
		request = leaving(e.Lease, host)
	}
	if why := bound(request, e.Mapping, host); why != nil {
		return why, nil
	}
	return b.takeOff(now, e, func(cal *calendar.Calendar) (move, error) {
		mapping, err := b.embedAnew(cal, e.Paused.Of(request), e.Window, e.Mapping)
		return move{e, mapping, e.Window}, err
	})
}

// staysFor says why a lease cannot go anywhere at present.
func staysFor(e *entry) []string {
	switch {
	case e.moving():
		return []string{"its links are being moved: try again in a moment"}
	case e.Lost != nil:
		return []string{"it is lost, and keeps its place for when it can be carried again"}
	}
	return nil
}

// takeOff takes a lease to what place finds in a calendar without it, or says why
// it stays.
func (b *Book) takeOff(now time.Time, e *entry, place func(*calendar.Calendar) (move, error)) (why []string, err error) {
	cal := b.withFormer().Clone()
	if err := cal.Release(e.bookings...); err != nil {
		return nil, err
	}
	m, err := place(cal)
	var infeasible *embed.Infeasible
	switch {
	case errors.As(err, &infeasible):
		return append([]string{"there is no other place for it"}, infeasible.Reasons...), nil
	case err != nil:
		return nil, err
	}
	if err := b.calendar.Release(e.bookings...); err != nil {
		return nil, err
	}
	return nil, b.remap(now, e, m, movePhase(e.Request, e.Mapping, m.to), 0)
}

// leaving is the request of a running lease with everything kept where it is, but
// for routers, switches and nodes that may be stopped on a host.
func leaving(l vnet.Lease, host vnet.HostID) vnet.Request {
	r := rewrite(l.Request)
	union := r.Union()
	stays := make(map[string]bool)
	for _, n := range union.Nodes {
		stays[n.Name] = !n.MayMove()
	}
	eachPlace(&r, func(name string, site *string, at *vnet.HostID) {
		if stays[name] || l.Mapping.Nodes[name] != host {
			*site, *at = "", l.Mapping.Nodes[name]
		}
	})
	return r
}

// bound says what of a request must be on a host where it is.
func bound(r vnet.Request, is vnet.Mapping, host vnet.HostID) (why []string) {
	for _, n := range r.Union().Placed() {
		if n.Host == host && is.Nodes[n.Name] == host {
			why = append(why, fmt.Sprintf("%s is there: nodes of a running network stay where they are, and so does what its request binds to the host", n.Name))
		}
	}
	return append(why, boundOutside(r.Union(), is, host)...)
}

// boundOutside says what of a topology has an interface or address of a host, which no
// other host has.
func boundOutside(t vnet.Topology, is vnet.Mapping, host vnet.HostID) (why []string) {
	stays := func(name, what string) {
		if is.Nodes[name] == host {
			why = append(why, fmt.Sprintf("%s stays there: %s is on that host and on no other one", name, what))
		}
	}
	for _, n := range t.Routers {
		if n.NAT != "" {
			stays(n.Name, "way out "+n.NAT)
		}
	}
	for _, s := range t.Switches {
		if s.Access != "" {
			stays(s.Name, "exit "+s.Access)
		}
	}
	for _, n := range t.Nodes {
		switch {
		case n.Join != "":
			stays(n.Name, "place to join "+n.Join)
		case n.Device != "":
			stays(n.Name, "device "+n.Device)
		}
	}
	return why
}

// openTo is what of the substrate a request may use: what works and is not drained,
// and drained hosts to which it binds what is there already.
func (g *resources) openTo(r vnet.Request, was vnet.Mapping) vnet.Substrate {
	stays := make(map[vnet.HostID]bool)
	for _, n := range r.Union().Placed() {
		if n.Host != "" && was.Nodes[n.Name] == n.Host {
			stays[n.Host] = true
		}
	}
	for _, h := range g.working.Hosts {
		if h.Drained && stays[h.Name] {
			return g.working.Undrained(stays)
		}
	}
	return g.open
}
