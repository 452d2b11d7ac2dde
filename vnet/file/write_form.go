package file

import (
	"net/netip"

	"sublet/vnet"
)

func requestForm(r vnet.Request) request {
	f := request{Network: name(r.Network), Tenant: name(r.Tenant), topology: topologyForm(r.Topology)}
	f.IPv6, f.Labels, f.Verify = r.IPv6, r.Labels, string(r.Verify)
	f.Movable, f.Colocate, f.Objective = r.Movable, string(r.Colocate), string(r.Objective)
	for _, a := range r.Negotiable {
		f.Axes = append(f.Axes, axis(a))
	}
	if !r.Start.IsZero() || !r.Before.IsZero() || r.For != 0 {
		f.Window = new(window)
	}
	if !r.Before.IsZero() {
		before := instant(r.Before)
		f.Window.Before = &before
	}
	if !r.Start.IsZero() {
		start := instant(r.Start)
		f.Window.Start = &start
	}
	if r.For != 0 {
		length := span(r.For)
		f.Window.For = &length
	}
	for _, c := range r.Chains {
		f.Chains = append(f.Chains, chainForm(c))
	}
	for _, c := range r.Classes {
		f.Classes = append(f.Classes, trafficClassForm(c))
	}
	for _, n := range r.Nodes {
		if n.IsFunction() {
			f.Functions = append(f.Functions, functionForm(n))
		}
	}
	for _, s := range r.Stages {
		f.Stages = append(f.Stages, stageForm(s, r.Topology))
	}
	return f
}

func topologyForm(t vnet.Topology) topology {
	var f topology
	for _, n := range t.Nodes {
		if !n.IsFunction() {
			f.Nodes = append(f.Nodes, nodeForm(n))
		}
	}
	for _, n := range t.Routers {
		f.Routers = append(f.Routers, routerForm(n))
	}
	for _, s := range t.Switches {
		f.Switches = append(f.Switches, switchForm(s))
	}
	for _, l := range t.Links {
		if l.Chain != "" { // made of the chain
			continue
		}
		f.Links = append(f.Links, link{Name: name(l.Name), Ends: linkEndsForm(l), demand: linkDemandForm(l), Latency: span(l.Latency), Paths: linkPathsForm(l), Spread: span(l.Spread), Control: l.Control, Area: int(l.Area), Cost: l.Cost, Class: name(l.Class), Labels: l.Labels})
	}
	return f
}

func linkEndsForm(l vnet.VirtualLink) (f linkEnds) {
	for i := range f {
		f[i].Node, f[i].Interface = name(l.Ends[i]), l.Interfaces[i]
		for _, p := range l.Addresses[i] {
			f[i].Address = append(f[i].Address, prefix(p))
		}
	}
	return f
}

func nodeForm(n vnet.VirtualNode) node {
	return node{
		Name: name(n.Name), CPU: cpu(n.CPU), Memory: size(n.Memory), Site: name(n.Site), Host: name(n.Host),
		Address: addressForm(n.Address), Exclusive: n.Exclusive, Movable: string(n.Movable), Join: name(n.Join), Device: n.Device, Labels: n.Labels, setup: setupForm(n.Setup),
	}
}

func switchForm(s vnet.VirtualSwitch) vswitch {
	f := vswitch{
		Name: name(s.Name), Kind: string(s.Kind), CPU: cpu(s.CPU), Site: name(s.Site), Host: name(s.Host),
		Ageing: span(s.Ageing), Labels: s.Labels, Access: name(s.Access), VLAN: stated(int(s.VLAN)),
		Scheduler: s.Scheduler, Buffer: unlessZero[size](s.Buffer), Manager: s.Manager,
		Lend: percent(s.Lend), Lookup: s.Lookup, Table: tableForm(s.Table), Slices: slicesForm(s.Slices),
	}
	f.Controller, f.Fail, f.Datapath, f.Miss, f.TLS = s.Controllers, s.Fail, s.Datapath, s.Miss, tlsForm(s.TLS)
	f.Tables, f.Entries, f.Groups, f.Meters, f.PacketIns = stated(s.Tables), stated(s.Entries), stated(s.Groups), stated(s.Meters), stated(s.PacketIns)
	f.MeterHold, f.Auxiliary = span(s.MeterHold), stated(s.Auxiliary)
	if s.DatapathID != 0 {
		f.DatapathID = (*datapathID)(&s.DatapathID)
	}
	for _, q := range s.Queues {
		f.Queues = append(f.Queues, queue{name(q.Link), q.Number, unlessZero[rate](q.Min), unlessZero[rate](q.Max)})
	}
	f.FlowSlices = flowSlicesForm(s.FlowSlices)
	for _, c := range s.Crosspoints {
		f.Crosspoints = append(f.Crosspoints, crosspoint{name(c.From), name(c.To), unlessZero[size](c.Buffer), c.Manager})
	}
	for link, p := range s.Ports {
		if f.Ports == nil {
			f.Ports = make(map[string]switchPort)
		}
		f.Ports[link] = switchPort{
			MACs: stated(p.MACs), Broadcast: stated(p.Broadcast), Unknown: stated(p.Unknown), To: names(p.To),
			In: unlessZero[rate](p.In), Out: unlessZero[rate](p.Out), Scheduler: p.Scheduler, Quantum: unlessZero[size](p.Quantum), Priority: p.Priority,
		}
	}
	return f
}

// unlessZero is a quantity that is written unless it is 0, the default.
func unlessZero[F, Q ~int64](q Q) *F {
	if q == 0 {
		return nil
	}
	f := F(q)
	return &f
}

// stated is a number that is written unless it is 0, the default.
func stated(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func addressForm(a netip.Addr) *address {
	if !a.IsValid() {
		return nil
	}
	return (*address)(&a)
}

func linkDemandForm(l vnet.VirtualLink) demand {
	f := demandForm(l.Bandwidth)
	if l.Impair != ([2]vnet.Impairment{}) {
		f.Impair = impairsForm(l.Impair)
	}
	if l.Down {
		f.Down = &l.Down
	}
	return f
}

func demandForm(both [2]vnet.Bandwidth) demand {
	f := demand{bandwidth: bandwidthForm(both[vnet.Forward])}
	if both[vnet.Reverse] != both[vnet.Forward] {
		reverse := bandwidthForm(both[vnet.Reverse])
		f.Reverse = &reverse
	}
	return f
}

func impairsForm(both [2]vnet.Impairment) *impairs {
	f := &impairs{impair: impairForm(both[vnet.Forward])}
	if both[vnet.Reverse] != both[vnet.Forward] {
		reverse := impairForm(both[vnet.Reverse])
		f.Reverse = &reverse
	}
	return f
}

func impairForm(i vnet.Impairment) impair {
	return impair{
		Delay: span(i.Delay), Jitter: span(i.Jitter), Distribution: string(i.Distribution),
		Loss: share(i.Loss), Corrupt: share(i.Corrupt), Duplicate: share(i.Duplicate), Reorder: share(i.Reorder),
	}
}

// bandwidthForm is the shortest form; a maximum alone implies no minimum, and
// a minimum alone, even 0bit, no maximum.
func bandwidthForm(b vnet.Bandwidth) bandwidth {
	low, high := rate(b.Min), rate(b.Max)
	switch {
	case b.BestEffort():
		return bandwidth{}
	case b.Max == vnet.Unbounded:
		return bandwidth{Min: &low}
	case b.Min == b.Max:
		return bandwidth{Rate: &high}
	case b.Min == 0:
		return bandwidth{Max: &high}
	}
	return bandwidth{Min: &low, Max: &high}
}

func stageForm(s vnet.Stage, start vnet.Topology) stage {
	f := stage{Name: name(s.Name), Remove: names(s.Remove)}
	if after := span(s.After); s.OnCommand {
		f.Begins = onCommand
	} else {
		f.After = &after
	}
	for link, both := range s.Links {
		if l, _ := start.Link(link); l.Chain == "" { // else made of the chain
			put(&f.Links, link, demandForm(both))
		}
	}
	for chain, change := range s.Chains {
		put(&f.Chains, chain, chainChange{Rate: unlessZero[rate](change.Rate), Paused: change.Paused})
	}
	beside := func(link string, state func(*demand)) {
		d, stated := f.Links[link]
		if stated && d == (demand{}) { // best effort, which something else alone does not mean
			d.Reverse = new(bandwidth)
		}
		state(&d)
		put(&f.Links, link, d)
	}
	for link, both := range s.Impair {
		beside(link, func(d *demand) { d.Impair = impairsForm(both) })
	}
	for link, down := range s.Down {
		beside(link, func(d *demand) { d.Down = &down })
	}
	for function, there := range s.Functions {
		absent := !there
		put(&f.Functions, function, functionChange{Absent: &absent})
	}
	if add := topologyForm(s.Add); len(add.Nodes)+len(add.Routers)+len(add.Switches)+len(add.Links) > 0 {
		f.Add = &addition{topology: add}
	}
	return f
}

func substrateForm(s vnet.Substrate) substrate {
	f := substrate{}
	for _, w := range s.Switches {
		f.Switches = append(f.Switches, fabricSwitchForm(s, w))
	}
	for _, h := range s.Hosts {
		f.Hosts = append(f.Hosts, host{Name: name(h.Name), Site: name(h.Site), CPU: cpu(h.CPU), Memory: size(h.Memory), Capacity: rate(h.Capacity), Price: h.Price})
	}
	for _, l := range s.Links {
		made := substrateLink{Name: name(l.Name), Ends: ends{name(l.Ends[0]), name(l.Ends[1])}, Capacity: rate(l.Capacity), Latency: span(l.Latency), Price: l.Price, MTU: l.MTU, Encapsulation: string(l.Encapsulation), Ports: portsForm(l)}
		if l.Share != 0 {
			share := percent(l.Share)
			made.Share = &share
		}
		f.Links = append(f.Links, made)
	}
	for name, a := range s.Relays {
		if f.Relays == nil {
			f.Relays = make(map[string]address, len(s.Relays))
		}
		f.Relays[name] = address(a)
	}
	for _, n := range s.NAT {
		f.NAT = append(f.NAT, natForm(n))
	}
	for _, x := range s.Exits {
		f.Exits = append(f.Exits, exit{Name: name(x.Name), Host: name(x.Host), Interface: x.Interface, VLAN: x.VLANs, Capacity: rate(x.Capacity)})
	}
	for _, d := range s.Devices {
		f.Devices = append(f.Devices, device{Name: d.Name, Host: name(d.Host), Interface: d.Interface})
	}
	for _, j := range s.Joins {
		f.Joins = append(f.Joins, join{Name: name(j.Name), Host: name(j.Host), Address: address(j.Address), Ports: j.Ports, Capacity: rate(j.Capacity)})
	}
	return f
}

func portsForm(l vnet.SubstrateLink) map[string]port {
	var f map[string]port
	for i, p := range l.Ports {
		if p == (vnet.Port{}) {
			continue
		}
		if f == nil {
			f = make(map[string]port)
		}
		f[l.Ends[i]] = port{Interface: p.Interface, Address: addressForm(p.Address)}
	}
	return f
}

func routerForm(n vnet.VirtualNode) router {
	r := router{node: nodeForm(n), Protocol: string(n.Protocol), AS: int(n.AS), NAT: name(n.NAT), Publish: n.Publish}
	for _, b := range n.Neighbors {
		r.Neighbors = append(r.Neighbors, neighbor{Address: anyAddress(b.Address), AS: int(b.AS)})
	}
	if n.FRR != "" {
		text := content(n.FRR)
		r.FRR = &frr{Text: &text}
	}
	return r
}

// linkPathsForm is how many paths and which order as written; nil: one.
func linkPathsForm(l vnet.VirtualLink) *linkPaths {
	if l.Paths == 0 {
		return nil
	}
	return &linkPaths{l.Paths, string(l.Order)}
}

// MarshalYAML writes a number alone where that says all.
func (p linkPaths) MarshalYAML() (any, error) {
	if p.Order == "" {
		return p.Count, nil
	}
	type plain linkPaths
	return plain(p), nil
}
