package vxlink

import (
	"strings"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// link reads one link; ends that are not as Do leaves them are empty.
func (f *fabric) link(id vnet.LeaseID, index int) plan.VxLink {
	link := plan.VxLink{Lease: id, Index: index}
	var devices [2]kernel.Link
	for i := range devices {
		devices[i] = f.devices[link.Device(i)]
		if name := linkName(devices[i].Alias); name != "" {
			link.Link = name
		}
	}
	for i, d := range devices {
		if d.Index == 0 || !d.Up || f.foreign[d.Index] || linkName(d.Alias) != link.Link {
			continue
		}
		if f.wired(d, devices[1-i]) {
			link.Ends[i] = f.end(d)
		}
	}
	return link
}

// wired says whether a device's frames go to the other end, and only there.
func (f *fabric) wired(d, other kernel.Link) bool {
	w := wire{target: other.Index}
	if remote := parseVxlan(d.Data).remote; d.Kind == "vxlan" && remote.IsValid() {
		w.stamp = stampOf(remote)
	}
	if minor, _ := parseMark(other.Alias); minor != 0 {
		w.class = kernel.Handle(1, minor)
	}
	this, _, err := w.attached(f.conn, d.Index)
	return err == nil && this
}

// end reads what a device leads to.
func (f *fabric) end(d kernel.Link) plan.End {
	e := plan.End{Rate: f.rates[d.Index]}
	switch d.Kind {
	case "veth":
		e.Port = f.port(d)
	case "vxlan":
		e.Tunnel = f.tunnel(d)
	}
	if e.Port == nil && e.Tunnel == nil {
		return plan.End{}
	}
	return e
}

// port reads the tenant's side; nil if it is missing, down, of another MTU or
// without its address or the route to the other end.
func (f *fabric) port(d kernel.Link) *plan.Port {
	n, ok := f.nodes[d.PeerNS]
	if !ok || d.PeerNS < 0 {
		return nil
	}
	inner, ok := n.devices[d.Peer]
	if !ok || !inner.Up || inner.MTU != d.MTU {
		return nil
	}
	have := plan.Port{Namespace: n.name, Interface: inner.Name, MTU: d.MTU}
	if strings.Count(n.name, ".") > 2 { // a switch's port has no address
		return &have
	}
	for _, a := range n.addresses[d.Peer] {
		// What tenants add has no metric.
		if a.Metric != 0 && (!a.HasRoute() || n.routes[peerRoute{d.Peer, a.Reach}]) {
			have.Address, have.Metric = a.Local, a.Metric
			if a.HasRoute() && a.Reach.IsSingleIP() {
				have.Peer = a.Reach.Addr()
			} else {
				have.Subnet = a.Reach
			}
			return &have
		}
	}
	return nil
}

// tunnel reads a VXLAN device and its class; nil if it has none.
func (f *fabric) tunnel(d kernel.Link) *plan.Tunnel {
	minor, best := parseMark(d.Alias)
	handle := kernel.Handle(1, minor)
	class, ok := f.classes[d.Peer][handle]
	v := parseVxlan(d.Data)
	have := class.HTB()
	t := &plan.Tunnel{
		VNI: vnet.VNI(v.vni), Interface: f.names[d.Peer], Local: v.local, Remote: v.remote, MTU: d.MTU,
		Class: plan.Class{Rate: vnet.Rate(have.Rate) * 8, Ceil: vnet.Rate(have.Ceil) * 8, BestEffort: best},
	}
	parent, want, limit := classOf(t)
	if minor == 0 || !ok || class.Parent != kernel.Handle(1, parent) || !isClass(have, want) || f.queues[d.Peer][handle] != limit {
		return nil
	}
	if v.tos != tos(t) {
		return nil
	}
	return t
}
