package vxlink

import (
	"net/netip"
	"slices"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// link reads one link; ends that are not as Do leaves them are empty.
func (f *fabric) link(of pathway) plan.VxLink {
	link := place{lease: f.lease, index: of.path}.vxlink()
	link.Standby = of.standby
	var slots [2]uint32
	for i := range slots {
		slots[i], link.Ends[i].Place = f.slotOf(of, i)
		if record := f.records[slots[i]]; record.link() != "" {
			link.Link = record.link()
			link.Units = max(link.Units, int(record.Units))
		}
	}
	for i := range slots {
		if (link.Path > 0 || link.Standby) && slots[i] == 0 {
			slots[i], link.Ends[i].Place = f.slotOf(pathway{path: link.Index}, i)
			link.Ends[i] = f.join(link, i, slots[i])
			continue
		}
		link.Ends[i] = f.end(link, i, slots[i])
	}
	for i := range slots {
		if _, wire := f.mergeSlot(link, i); link.Units > 0 && portOf(link.Ends[i]) != nil {
			link.Stall = wire.Stall
		}
	}
	link.Control = f.controlOf(link, slots)
	return f.checked(link, slots)
}

// pathway is one of the links of a fabric, by the number of its index and path.
type pathway struct {
	path    int
	standby bool
}

// slotOf is that of a link's end, and its place. Where two are written down for it,
// since an agent was killed meanwhile, the second is of what stands by.
func (f *fabric) slotOf(of pathway, i int) (slot uint32, turn int) {
	used := false
	for turn := range plan.Places {
		slot, ok := f.slots[place{f.lease, of.path, i}.turned(turn)]
		if !ok {
			continue
		}
		standby := f.records[slot].Standby != 0 || used
		used = used || !standby
		if standby == of.standby {
			return slot, turn
		}
	}
	return 0, 0
}

// join reads the port that a path beside the first, or what stands by, joins.
func (f *fabric) join(l plan.VxLink, i int, slot uint32) plan.End {
	l.Path, l.Standby = 0, false
	at := l.Ends[i].Place
	if e := f.end(l, i, slot); e.Port != nil {
		return plan.End{Join: e.Port, Impair: e.Impair, Down: e.Down, Place: at}
	}
	return plan.End{Place: at}
}

// broken says that an end is not as Do leaves it.
func broken(e plan.End) bool { return e == plan.End{Place: e.Place, Lost: e.Lost, Known: e.Known} }

// end reads what an end leads to; an empty one if something lacks.
func (f *fabric) end(l plan.VxLink, i int, slot uint32) plan.End {
	e := f.whole(l, i, slot)
	e.Place = l.Ends[i].Place
	return e
}

func (f *fabric) whole(l plan.VxLink, i int, slot uint32) plan.End {
	record := f.records[slot]
	if slot == 0 || record.link() != l.Link {
		return plan.End{}
	}
	if record.IsTunnel != 0 {
		if t := f.tunnel(slot, record); t != nil {
			return plan.End{Tunnel: t, Rate: vnet.Rate(record.Shaped) * 8}
		}
		return plan.End{}
	}
	d := f.devices[l.Device(i)]
	if d.Index == 0 {
		return plan.End{Lost: true, Known: f.part.knowsOwn(l, i)}
	}
	if d.Kind != "veth" || d.Index != number(slot) || f.foreign[d.Index] || linkName(d.Alias) != l.Link ||
		!f.admits(d.Index) {
		return plan.End{}
	}
	is, _, ok := f.impairment(l, i, slot)
	if p := f.port(l.Key()+l.Device(i), d); p != nil && ok && f.bandsRight(slot, d) {
		if p.Inside.Down {
			f.down[l.Key()+l.Device(i)] = report.ItemError{Kind: l.Kind(), Key: l.Key(), Lease: l.Lease, Op: plan.Carry, Text: downInside(p)}
		}
		return plan.End{Port: p, Rate: f.rates[d.Index], Impair: is, Down: !d.Up}
	}
	return plan.End{}
}

// checked empties the ends whose frames do not go to the other one, or whose
// device is left over.
func (f *fabric) checked(l plan.VxLink, slots [2]uint32) plan.VxLink {
	for i, e := range l.Ends {
		if e.Tunnel != nil && l.Path == 0 && f.devices[l.Device(i)].Index != 0 {
			l.Ends[i] = plan.End{Place: e.Place}
		}
	}
	whole := l
	for i := range l.Ends {
		if broken(whole.Ends[0]) || broken(whole.Ends[1]) {
			break // the link is not right whatever this end does
		}
		if !f.actsRight(whole, i, slots) {
			l.Ends[i] = plan.End{Place: l.Ends[i].Place}
		}
		if whole.Ends[i].Tunnel != nil {
			f.part.measure(slots[i], f.outletOf(whole, 1-i, slots[1-i]))
		}
	}
	return l
}

// actsRight says whether frames that enter by an end go where they should.
func (f *fabric) actsRight(l plan.VxLink, i int, slots [2]uint32) bool {
	other := end{record: f.records[slots[1-i]]}
	if l.Ends[i].Tunnel != nil && merges(l, 1-i) {
		other.merge, _ = f.mergeSlot(l, 1-i)
	}
	outlet := f.outletOf(l, i, slots[i])
	if spreads(l, i) && !f.programs.entered(outlet, l.Path, branchOf(l, other.record)) {
		return false
	}
	if l.Ends[i].Join != nil {
		return true // its port is for path 0 to check
	}
	if !f.mergesRight(l, i, slots[i]) || outlet != slots[i] && f.wires[number(outlet)].Number != divides(l, i) {
		return false
	}
	if outlet != slots[i] {
		if have, err := f.programs.end(slots[i]); err != nil || have != goRound(slots[i], outlet) {
			return false
		}
	}
	have, err := f.programs.end(outlet)
	want := endOf(l, i, slots, outlet, other, f.trunk)
	if p := portOf(l.Ends[1-i]); p != nil && p.Inside.Down && have.Action == vxlinkActionFWD_SWITCH && want.Action == vxlinkActionFWD_PEER {
		want.Action = have.Action // whether one that is down has addresses is not seen: functions have none
	}
	return err == nil && have == want
}

// mergesRight says whether frames that were put into order for an end go to its port.
func (f *fabric) mergesRight(l plan.VxLink, i int, port uint32) bool {
	if !merges(l, i) {
		return true
	}
	slot, _ := f.mergeSlot(l, i)
	have, err := f.programs.end(slot)
	return slot != 0 && err == nil && have == afterMerge(l, i, port, slot)
}

// outletOf is the slot at which frames that enter by an end go on.
func (f *fabric) outletOf(l plan.VxLink, i int, slot uint32) uint32 {
	if takesDetour(l, i) {
		_, slot, _ = f.impairment(l, i, slot)
	}
	return slot
}

// port reads the tenant's side of a link's device; nil if it is missing, has a larger MTU than ours
// or another one that is not the tenant's. Addresses without their route are left
// out.
func (f *fabric) port(of string, d kernel.Link) *plan.Port {
	n, ok := f.nodes[d.PeerNS]
	if !ok || d.PeerNS < 0 {
		return nil
	}
	inner, ok := n.devices[d.Peer]
	if !ok {
		return nil
	}
	inside, ok := insideOf(n.name, inner, d)
	if !ok {
		return nil
	}
	if plan.TenantsNode(n.name) && complete(d) {
		f.own[of] = n.ownAt(inner, d)
	}
	have := plan.Port{Namespace: n.name, Interface: inner.Name, MTU: d.MTU, Queues: n.queues[d.Peer], Inside: inside}
	if _, _, node := plan.ParseNamespace(n.name); !node { // a switch's port has no address
		return &have
	}
	for _, a := range n.addresses[d.Peer] {
		switch {
		case a.Metric == 0 || a.HasRoute() && !n.routes[peerRoute{d.Peer, a.Reach}]:
			// What tenants add has no metric.
		case a.Metric >= moreMetric:
			have.More = append(have.More, netip.PrefixFrom(a.Local, a.Reach.Bits()))
		case have.Address.IsValid():
		default:
			have.Address, have.Metric = a.Local, a.Metric
			if a.HasRoute() && a.Reach.IsSingleIP() {
				have.Peer = a.Reach.Addr()
			} else {
				have.Subnet = a.Reach
			}
		}
	}
	slices.SortFunc(have.More, plan.ComparePrefixes)
	return &have
}

// tunnel reads a tunnel's class and way; nil if something lacks.
func (f *fabric) tunnel(slot uint32, r vxlinkRecord) *plan.Tunnel {
	index, handle := int(r.Uplink), handleOf(r.Minor)
	class, ok := f.classes[index][handle]
	if f.trunk == 0 || r.Minor == 0 || !ok || f.programs.tunnelOf(r.Vni) != slot {
		return nil
	}
	if class.Parent != handleOf(r.parent()) || !r.takes(class.HTB(), f.part.undercounts()) || !f.limitRight(slot, r) {
		return nil
	}
	f.part.rates.Lock()
	f.part.trimmed(slot, r, class.HTB())
	f.part.rates.Unlock()
	return r.tunnel(f.names[index])
}
