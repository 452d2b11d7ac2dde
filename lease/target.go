package lease

import (
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// recompute brings rates up to date and, for the leases that changed, the
// targets of their hosts.
func (b *Book) recompute(now time.Time) error {
	if !b.stale {
		return nil
	}
	deployed, err := b.allocate()
	if err != nil {
		return err
	}
	for _, e := range deployed {
		if e.parts == nil {
			if err := b.compile(e); err != nil {
				return err
			}
			b.markDirty(e)
		}
	}
	hosts := plan.Hosts(b.sub)
	if b.everyHost {
		for _, name := range hosts {
			b.dirty[name] = true
		}
	}
	if err := b.setTargets(now, deployed); err != nil {
		return err
	}
	if b.everyHost {
		b.rollout.Retain(now, hosts)
		b.unmade, b.differ = nil, nil
	}
	b.stale, b.everyHost, b.dirty = false, false, make(map[vnet.HostID]bool)
	return nil
}

// setTargets sets the targets of hosts of leases that changed.
func (b *Book) setTargets(now time.Time, deployed []*entry) error {
	on, err := b.madeOn(deployed, b.dirty)
	if err != nil {
		return err
	}
	for _, name := range plan.Hosts(b.sub) {
		if b.dirty[name] {
			b.rollout.SetTarget(now, target(name, on[name]))
			delete(b.unmade, name)
		}
	}
	return nil
}

// compile notes what each host shall have of a lease.
func (b *Book) compile(e *entry) error {
	versions := []vnet.Lease{e.Lease}
	if e.moving() && e.Move.Form == nil {
		versions = append(versions, e.beforeMove())
		if e.Move.Phase == vnet.MovePrepares || e.copying() { // what is in use first
			slices.Reverse(versions)
		}
	}
	e.parts = make(map[vnet.HostID][]plan.Item, len(e.hosts))
	if e.copying() && !e.Move.Live {
		return b.compileCopies(e)
	}
	for _, l := range versions {
		l.State = vnet.Deploying // a failed one is still to be there
		hosts, err := b.compiler().Compile([]vnet.Lease{l})
		if err != nil {
			return err
		}
		for _, name := range e.allHosts() {
			if former, there := e.parts[name]; there {
				e.parts[name] = alongside(former, hosts[name].Items())
			} else {
				e.parts[name] = hosts[name].Items()
			}
		}
	}
	e.setLive()
	if err := b.keepNodes(e); err != nil {
		return err
	}
	if err := b.bridge(e); err != nil {
		return err
	}
	e.handOver()
	return nil
}

// merged adds the items of which no other has the kind and key.
func merged(items, more []plan.Item) []plan.Item {
	for _, item := range more {
		if !slices.ContainsFunc(items, func(other plan.Item) bool { return other.Kind() == item.Kind() && other.Key() == item.Key() }) {
			items = append(items, item)
		}
	}
	return items
}

// markDirty says that a lease's hosts need new targets.
func (b *Book) markDirty(e *entry) {
	for _, name := range e.allHosts() {
		b.dirty[name] = true
	}
}

// target puts together what a host shall have of the leases on it, which is
// what plan.Compile of all of them together gives. Leases share uplinks.
func target(name vnet.HostID, leases []*entry) plan.Host {
	host := plan.Host{Host: name}
	uplinks := make(map[string]bool)
	for _, e := range leases {
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
