package lease

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sublet/embed"
	"sublet/plan"
	"sublet/vnet"
)

// refresh computes rates anew and, for the leases that changed, what their
// hosts shall have.
func (b *Book) refresh(now time.Time) error {
	active, err := b.allocate()
	if err != nil {
		return err
	}
	for _, e := range active {
		if e.parts == nil {
			if err := b.compile(e); err != nil {
				return err
			}
		}
	}
	for _, h := range b.sub.Hosts {
		if b.everyHost || b.dirty[h.Name] {
			b.rollout.Aim(now, target(h.Name, active))
		}
	}
	if b.everyHost {
		names := make([]vnet.HostID, len(b.sub.Hosts))
		for i, h := range b.sub.Hosts {
			names[i] = h.Name
		}
		b.rollout.Keep(now, names)
	}
	b.stale, b.everyHost, b.dirty = false, false, make(map[vnet.HostID]bool)
	return nil
}

// allocate gives the active leases their rates.
func (b *Book) allocate() ([]*entry, error) {
	var active []*entry
	var running, former []embed.Tenancy
	moving := false
	for _, e := range b.near {
		if !e.active() {
			continue
		}
		active = append(active, e)
		running = append(running, embed.Tenancy{Topology: e.Topology(), Mapping: e.Mapping})
		before := e.Mapping
		if e.moving() {
			before, moving = e.Move.From, true
		}
		former = append(former, embed.Tenancy{Topology: e.Topology(), Mapping: before})
	}
	e, err := b.engine(b.sub)
	if err != nil {
		return nil, fmt.Errorf("allocate rates: %w", err)
	}
	rates, err := e.Rates(running)
	if moving && err == nil {
		err = limit(e, rates, former)
	}
	if err != nil {
		return nil, fmt.Errorf("allocate rates: %w", err)
	}
	for i, e := range active {
		if r := wholeBytes(rates[i]); !maps.Equal(r, e.Rates) {
			e.Rates, e.parts = r, nil
			b.touch(e)
		}
	}
	return active, nil
}

// limit takes rates down to what another state of affairs would leave: while
// leases move, both hold.
func limit(e *embed.Engine, rates []map[string][2]vnet.Rate, other []embed.Tenancy) error {
	limits, err := e.Rates(other)
	if err != nil {
		return err
	}
	for i := range rates {
		for link, r := range rates[i] {
			l := limits[i][link]
			rates[i][link] = [2]vnet.Rate{min(r[0], l[0]), min(r[1], l[1])}
		}
	}
	return nil
}

// wholeBytes rounds rates down to whole bytes per second, which is what the
// kernel can hold: less than 8 bit/s are lost.
func wholeBytes(rates map[string][2]vnet.Rate) map[string][2]vnet.Rate {
	rounded := make(map[string][2]vnet.Rate, len(rates))
	for link, r := range rates {
		rounded[link] = [2]vnet.Rate{r[0] / 8 * 8, r[1] / 8 * 8}
	}
	return rounded
}

// compile notes what each host shall have of a lease.
func (b *Book) compile(e *entry) error {
	versions := []vnet.Lease{e.Lease}
	if e.moving() {
		versions = append(versions, e.before())
		if e.Move.Phase == vnet.MovePrepares { // what is in use first
			slices.Reverse(versions)
		}
	}
	e.parts = make(map[vnet.HostID][]plan.Item, len(e.hosts))
	for _, l := range versions {
		l.State = vnet.Deploying // a failed one is still to be there
		hosts, err := plan.Compile(b.sub, []vnet.Lease{l})
		if err != nil {
			return err
		}
		for _, name := range e.everywhere() {
			e.parts[name] = beside(e.parts[name], hosts[name].Items())
		}
	}
	b.mark(e)
	return nil
}

// beside adds items that do not stand in the place of others.
func beside(items, more []plan.Item) []plan.Item {
	for _, item := range more {
		if !slices.ContainsFunc(items, func(other plan.Item) bool { return other.Kind() == item.Kind() && other.Key() == item.Key() }) {
			items = append(items, item)
		}
	}
	return items
}

// mark says that a lease's hosts need new targets.
func (b *Book) mark(e *entry) {
	for _, name := range e.everywhere() {
		b.dirty[name] = true
	}
}

// target puts together what a host shall have of all leases, which is what
// plan.Compile of all of them together gives. Leases share uplinks.
func target(name vnet.HostID, active []*entry) plan.Host {
	host := plan.Host{Host: name}
	uplinks := make(map[string]bool)
	for _, e := range active {
		for _, item := range e.parts[name] {
			if item.Kind() == plan.KindUplink {
				if uplinks[item.Key()] {
					continue
				}
				uplinks[item.Key()] = true
			}
			host.Add(item)
		}
	}
	return host
}
