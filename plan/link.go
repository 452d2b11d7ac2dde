package plan

import (
	"fmt"

	"sublet/vnet"
)

// link adds a virtual link's VxLinks to the hosts on its path.
func (c *Compiler) link(net *network, link vnet.VirtualLink) error {
	from, to := net.lease.Mapping.Nodes[link.Ends[0]], net.lease.Mapping.Nodes[link.Ends[1]]
	shares := net.lease.Mapping.Paths(link.Name)
	if shares == nil { // within a host
		shares = []vnet.PathShare{{Units: vnet.ShareUnits}}
	}
	numbers := net.lease.VNIs[link.Name]
	if link.Chain != "" && len(numbers) > 0 { // the first is its chain's
		numbers = numbers[1:]
	}
	for path, share := range shares {
		cuts, err := TunnelHops(c.sub, from, share.Path)
		if err != nil {
			return err
		}
		if len(cuts) > len(numbers) {
			return fmt.Errorf("path %d has %d tunnels and %d identifiers", path, len(cuts), len(numbers))
		}
		p := pathPlan{net: net, link: link, path: path, share: share, hops: tunnelHopsOf(cuts, numbers)}
		numbers = numbers[len(cuts):]
		if err := c.path(p, from, to); err != nil {
			return err
		}
	}
	if len(numbers) > 0 {
		return fmt.Errorf("has %d identifiers more than tunnels", len(numbers))
	}
	return nil
}

// pathPlan is one of the paths that carry a virtual link.
type pathPlan struct {
	net   *network
	link  vnet.VirtualLink
	path  int // from 0
	share vnet.PathShare
	hops  []tunnelHop
}

// path adds a path's VxLinks to the hosts on it.
func (c *Compiler) path(p pathPlan, from, to vnet.HostID) error {
	wire := VxLink{Lease: p.net.lease.ID(), Link: p.link.Name, Index: p.net.index[p.link.Name], Path: p.path, Control: p.net.controlOf(p.link)}
	if p.share.Units < vnet.ShareUnits {
		wire.Units = p.share.Units
		wire.Stall = p.stall()
	}
	rates := p.rates()
	for d := range rates {
		rates[d] = p.withTags(rates[d])
	}
	if p.link.Chain != "" && len(p.hops) > 0 { // its packets come shaped, from where the chain begins
		rates = [2]vnet.Rate{}
	}
	wire.Ends[0] = p.port(0)
	at := from
	for _, h := range p.hops {
		c.lists(&h)
		c.flows(p, h)
		wire.Ends[1] = End{Tunnel: c.tunnel(p, h, vnet.Forward), Place: p.place(1).Tunnel}
		c.place(at, wire, rates)
		wire.Ends[0] = End{Tunnel: c.tunnel(p, h, vnet.Reverse), Place: p.place(0).Tunnel}
		c.pin(p, h, vnet.Forward)
		c.pin(p, h, vnet.Reverse)
		at = h.to
	}
	if at != to {
		return fmt.Errorf("path ends at %s, node %s is on %s", at, p.link.Ends[1], to)
	}
	wire.Ends[1] = p.port(1)
	if len(p.hops) == 0 {
		rates = c.inside(from, rates)
	}
	c.place(at, wire, rates)
	return nil
}

// port is where a path meets a node: the first one has the port, the others
// join it. Frames of direction d enter a link by its end d.
func (p pathPlan) port(end int) End {
	at := p.place(end).Port
	if p.path > 0 {
		return End{Join: p.net.port(p.link, end), Impair: p.link.Impair[end], Down: p.link.Down, Place: at}
	}
	return End{Port: p.net.port(p.link, end), Impair: p.link.Impair[end], Down: p.link.Down, Place: at}
}

// place says where what is at an end of the link is there.
func (p pathPlan) place(end int) vnet.EndPlace { return p.net.lease.Mapping.Places[p.link.Name][end] }

// rates are the path's parts of what is allocated to the link.
func (p pathPlan) rates() [2]vnet.Rate {
	rates := p.net.rates(p.link)
	for d := range rates {
		rates[d] = p.part(rates[d])
	}
	return rates
}

// part is the path's part of a rate, in whole bytes.
func (p pathPlan) part(r vnet.Rate) vnet.Rate {
	if p.share.Units == vnet.ShareUnits {
		return r
	}
	return p.share.Of(r).WholeBytesDown()
}

// bestEffortShare is the part of what a host carries that one best-effort link
// inside it may take, as a divisor. No queue is shared there that could put
// best effort below leased frames; they compete for processors.
const bestEffortShare = 10

// inside bounds the best effort of a link within one host.
func (c *Compiler) inside(host vnet.HostID, rates [2]vnet.Rate) [2]vnet.Rate {
	node, _ := c.sub.HostOf(string(host))
	for d := range rates {
		if rates[d] == 0 {
			rates[d] = (node.Carries() / bestEffortShare).WholeBytesUp()
		}
	}
	return rates
}

// place puts a wire on a host. Tenants' frames are shaped once, on the host
// where they start: at the end opposite to the port they enter by.
func (c *Compiler) place(host vnet.HostID, wire VxLink, rates [2]vnet.Rate) {
	for i := range wire.Ends {
		if wire.Ends[1-i].Port != nil || wire.Ends[1-i].Join != nil {
			wire.Ends[i].Rate = enforced(rates[1-i])
		}
		if t := wire.Ends[i].Tunnel; t != nil {
			c.uplink(host, t.Interface)
			o := entry(wire, t)
			if c.sources[o.VNI] {
				o.Source = SourceOf(o.VNI)
			}
			c.host(host).Add(o)
		}
	}
	if wire.Ends[0].Tunnel != nil && wire.Ends[1].Tunnel != nil {
		wire.Stall = 0 // order is kept where the link ends
	}
	c.host(host).Add(wire)
}

// entry is the overlay's entry of a tunnel.
func entry(wire VxLink, t *Tunnel) Overlay {
	return Overlay{
		Lease: wire.Lease, Link: wire.Link, VNI: t.VNI, Protocol: t.Protocol, Interface: t.Interface,
		Local: t.Local, Remote: t.Remote, MTU: t.MTU, BestEffort: t.Class.BestEffort,
	}
}

// noLimit is more than any host forwards: a bound of that height is left out
// instead of enforced. An operator who gives a host such a capacity wants its
// links without a stated maximum unshaped.
const noLimit = 500 * vnet.Gbit

func enforced(r vnet.Rate) vnet.Rate {
	if r >= noLimit {
		return 0
	}
	return r
}

// tunnel is one end of a tunnel hop: its start (Forward) or its far end (Reverse).
func (c *Compiler) tunnel(p pathPlan, h tunnelHop, dir vnet.Direction) *Tunnel {
	near, far := portOf(h.out, h.from), portOf(h.in, h.to)
	if dir == vnet.Reverse {
		near, far = far, near
	}
	return &Tunnel{
		VNI: h.vni, Interface: near.Interface, Local: near.Address, Remote: far.Address, Protocol: h.encapsulation(),
		MTU: p.net.mtu + p.tag(), List: listBytes(len(h.lists[dir])), Class: p.class(h, dir),
	}
}

// uplink makes sure that a host shapes the interface a tunnel leaves by.
func (c *Compiler) uplink(host vnet.HostID, device string) {
	u := Uplink{Interface: device}
	if !c.first(c.host(host), id(u)) {
		return
	}
	for _, at := range c.sub.LinksAt(string(host)) {
		l := c.sub.Links[at]
		for i, end := range l.Ends {
			if end == string(host) && l.Ports[i].Interface == device {
				u.Capacity = max(u.Capacity, Outer(l.Capacity))
				u.Leases = max(u.Leases, Outer(l.Leasable()))
			}
		}
	}
	c.host(host).Add(u)
}
