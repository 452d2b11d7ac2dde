package lease

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// Restore returns the book of a stored state. What hosts have is unknown
// until they report. An error says which lease contradicts the substrate.
func Restore(now time.Time, state State) (*Book, error) {
	b := New(state.Substrate)
	b.changed.substrate = false
	b.serial, b.unfinished = state.Counters.Serial, state.Counters.Unfinished
	b.rollout.Restore(now, state.Counters.lineage(), state.Plans, state.Ahead.prepared())
	b.rollout.SetDown(downHosts(b.sub))
	for _, n := range state.Notify {
		b.beside.notify.of[n.Tenant] = n
	}
	for _, w := range state.Waiting {
		b.beside.waiting.of[w.ID()] = w
	}
	ahead := state.Ahead.give(b)
	leases := state.Leases
	if !slices.IsSortedFunc(leases, bySerial) {
		leases = slices.SortedFunc(slices.Values(leases), bySerial)
	}
	for _, l := range leases {
		if err := b.restore(now, l, ahead[l.ID()]); err != nil {
			return nil, fmt.Errorf("restore lease %s: %w", l.ID(), err)
		}
	}
	return b, nil
}

// restore enters a lease; known is what was made of it ahead, nil: nothing.
func (b *Book) restore(now time.Time, l vnet.Lease, known *entry) error {
	e := known
	if e == nil {
		e = &entry{hosts: hostsOf(b.index(b.sub), l)}
	}
	e.Lease, e.why, e.copied = l, l.Message, now
	b.entries[l.ID()] = e
	b.serial = max(b.serial, l.Serial)
	b.vnis.take(l.VNIs)
	if l.Move != nil {
		b.vnis.take(l.Move.VNIs)
	}
	b.rollout.Expect(l.ID(), e.formerHosts())
	if e.current() == phaseDraining {
		b.rollout.Expect(l.ID(), e.hosts)
	}
	switch {
	case known != nil:
		b.opens(e)
	case l.State != vnet.Ended:
		if err := b.book(e); err != nil {
			return err
		}
	}
	b.track(e)
	if l.Life.Admitted.IsZero() { // of a version without a ledger
		e.Life = lifeOf(l)
		b.touch(e)
	}
	return nil
}

// hostsOf lists the hosts that carry any of a lease, relays too.
func hostsOf(sub vnet.Indexed, l vnet.Lease) []vnet.HostID {
	hosts := make(map[vnet.HostID]bool)
	for _, host := range l.Mapping.Nodes {
		hosts[host] = true
	}
	for _, link := range l.Request.Union().Links {
		// What cannot be walked any more has no relays left to ask.
		cuts, _ := plan.AllTunnelHops(sub, l.Mapping, link)
		for _, hops := range cuts {
			for i, hop := range hops {
				if _, speaks := sub.OpenFlowOf(hop.To()); speaks || i == len(hops)-1 {
					hosts[vnet.HostID(hop.To())] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}
