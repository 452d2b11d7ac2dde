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
	for path, share := range shares {
		cuts, err := Stretches(c.sub, from, share.Path)
		if err != nil {
			return err
		}
		if len(cuts) > len(numbers) {
			return fmt.Errorf("path %d has %d tunnels and %d identifiers", path, len(cuts), len(numbers))
		}
		w := way{net: net, link: link, path: path, share: share, stretches: stretchesOf(cuts, numbers)}
		numbers = numbers[len(cuts):]
		if err := c.way(w, from, to); err != nil {
			return err
		}
	}
	if len(numbers) > 0 {
		return fmt.Errorf("has %d identifiers more than tunnels", len(numbers))
	}
	return nil
}

// way is one of the paths that carry a virtual link.
type way struct {
	net       *network
	link      vnet.VirtualLink
	path      int // from 0
	share     vnet.PathShare
	stretches []stretch
}

// way adds a path's VxLinks to the hosts on it.
func (c *Compiler) way(w way, from, to vnet.HostID) error {
	wire := VxLink{Lease: w.net.lease.ID(), Link: w.link.Name, Index: w.net.index[w.link.Name], Path: w.path}
	if w.share.Units < vnet.ShareUnits {
		wire.Units = w.share.Units
	}
	rates := w.rates()
	wire.Ends[0] = w.port(0)
	at := from
	for _, s := range w.stretches {
		c.lists(&s)
		wire.Ends[1] = End{Tunnel: c.tunnel(w, s, vnet.Forward)}
		c.place(at, wire, rates)
		wire.Ends[0] = End{Tunnel: c.tunnel(w, s, vnet.Reverse)}
		c.pin(w, s, vnet.Forward)
		c.pin(w, s, vnet.Reverse)
		at = s.to
	}
	if at != to {
		return fmt.Errorf("path ends at %s, node %s is on %s", at, w.link.Ends[1], to)
	}
	wire.Ends[1] = w.port(1)
	if len(w.stretches) == 0 {
		rates = c.inside(from, rates)
	}
	c.place(at, wire, rates)
	return nil
}

// port is where a path meets a node: the first one has the port, the others
// join it.
func (w way) port(end int) End {
	if w.path > 0 {
		return End{Join: w.net.port(w.link, end)}
	}
	return End{Port: w.net.port(w.link, end)}
}

// rates are the path's parts of what is allocated to the link.
func (w way) rates() [2]vnet.Rate {
	rates := w.net.rates(w.link)
	for d := range rates {
		rates[d] = w.part(rates[d])
	}
	return rates
}

// part is the path's part of a rate, in whole bytes.
func (w way) part(r vnet.Rate) vnet.Rate {
	if w.share.Units == vnet.ShareUnits {
		return r
	}
	return w.share.Of(r) / 8 * 8
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
			rates[d] = wholeBytes(node.Carries() / bestEffortShare)
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
			c.host(host).Add(entry(wire, t))
		}
	}
	c.host(host).Add(wire)
}

// entry is the overlay's entry of a tunnel.
func entry(wire VxLink, t *Tunnel) Overlay {
	return Overlay{
		Lease: wire.Lease, Link: wire.Link, VNI: t.VNI, Interface: t.Interface,
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

// tunnel is one end of a stretch: its start (Forward) or its far end (Reverse).
func (c *Compiler) tunnel(w way, s stretch, dir vnet.Direction) *Tunnel {
	near, far := portOf(s.out, s.from), portOf(s.in, s.to)
	if dir == vnet.Reverse {
		near, far = far, near
	}
	return &Tunnel{
		VNI: s.vni, Interface: near.Interface, Local: near.Address, Remote: far.Address,
		MTU: w.net.mtu, List: listBytes(len(s.lists[dir])), Class: w.class(dir),
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
