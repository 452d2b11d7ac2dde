package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sublet/vnet"
)

// Compile turns leases into what each host must have. Leases that are neither
// deploying nor running ask for nothing. Every host of the substrate gets a
// plan, an empty one if nothing is to be there.
func Compile(sub vnet.Substrate, leases []vnet.Lease) (map[vnet.HostID]Host, error) {
	c := compiler{sub: sub, hosts: make(map[vnet.HostID]*Host, len(sub.Hosts))}
	for _, h := range sub.Hosts {
		c.hosts[h.Name] = &Host{Host: h.Name}
	}
	for _, l := range leases {
		if l.State != vnet.Deploying && l.State != vnet.Running {
			continue
		}
		if err := c.lease(l); err != nil {
			return nil, fmt.Errorf("compile lease %s: %w", l.ID(), err)
		}
	}
	plans := make(map[vnet.HostID]Host, len(c.hosts))
	for name, h := range c.hosts {
		plans[name] = *h
	}
	return plans, nil
}

type compiler struct {
	sub   vnet.Substrate
	hosts map[vnet.HostID]*Host
}

// lease adds one lease's items to the hosts that carry it.
func (c *compiler) lease(l vnet.Lease) error {
	net, err := newNetwork(c.sub, l)
	if err != nil {
		return err
	}
	for _, node := range net.top.All() {
		host := c.hosts[l.Mapping.Nodes[node.Name]]
		if host == nil {
			return fmt.Errorf("node %s is mapped to unknown host %q", node.Name, l.Mapping.Nodes[node.Name])
		}
		if !slices.ContainsFunc(host.Names, func(t NameTable) bool { return t.Lease == l.ID() }) {
			host.Add(NameTable{Lease: l.ID(), Names: net.names()})
		}
		host.Add(VNode{
			Lease: l.ID(), Node: node.Name, Owner: l.Owner,
			CPU: node.CPU, Memory: wholePages(node.Memory),
		})
		host.Add(net.router(node))
	}
	if err := c.switches(net); err != nil {
		return err
	}
	for _, link := range net.top.Links {
		if err := c.link(net, link); err != nil {
			return fmt.Errorf("link %s: %w", link.Name, err)
		}
	}
	return nil
}

// switches adds the switches and their ports to their hosts.
func (c *compiler) switches(net *network) error {
	for _, s := range net.top.Switches {
		host := c.hosts[net.lease.Mapping.Nodes[s.Name]]
		if host == nil {
			return fmt.Errorf("switch %s is mapped to unknown host %q", s.Name, net.lease.Mapping.Nodes[s.Name])
		}
		if s.Kind == vnet.SwitchEngine {
			addEngine(host, net, s)
			continue
		}
		host.Add(net.vswitch(s))
		for _, p := range net.switchPorts(s) {
			host.Add(p)
		}
	}
	return nil
}

func addEngine(host *Host, net *network, s vnet.VirtualSwitch) {
	host.Add(net.vxswitch(s))
	for _, p := range net.vxswitchPorts(s) {
		host.Add(p)
	}
}

// stretch is the part of a path between two hosts that run agents: one tunnel.
type stretch struct {
	from, to vnet.HostID
	out, in  vnet.SubstrateLink // first and last link
	vni      vnet.VNI
}

// link adds a virtual link's VxLinks to the hosts on its path.
func (c *compiler) link(net *network, link vnet.VirtualLink) error {
	from, to := net.lease.Mapping.Nodes[link.Ends[0]], net.lease.Mapping.Nodes[link.Ends[1]]
	stretches, err := c.stretches(net.lease, link.Name, from)
	if err != nil {
		return err
	}
	wire := VxLink{Lease: net.lease.ID(), Link: link.Name, Index: net.index[link.Name]}
	wire.Ends[0] = End{Port: net.port(link, 0)}
	at := from
	for _, s := range stretches {
		wire.Ends[1] = End{Tunnel: c.tunnel(net, link, s, vnet.Forward)}
		c.place(at, wire, net.rates(link))
		wire.Ends[0] = End{Tunnel: c.tunnel(net, link, s, vnet.Reverse)}
		at = s.to
	}
	if at != to {
		return fmt.Errorf("path ends at %s, node %s is on %s", at, link.Ends[1], to)
	}
	wire.Ends[1] = End{Port: net.port(link, 1)}
	rates := net.rates(link)
	if len(stretches) == 0 {
		rates = c.inside(from, rates)
	}
	c.place(at, wire, rates)
	return nil
}

// bestEffortShare is the part of what a host carries that one best-effort link
// inside it may take, as a divisor. No queue is shared there that could put
// best effort below leased frames; they compete for processors.
const bestEffortShare = 10

// inside bounds the best effort of a link within one host.
func (c *compiler) inside(host vnet.HostID, rates [2]vnet.Rate) [2]vnet.Rate {
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
func (c *compiler) place(host vnet.HostID, wire VxLink, rates [2]vnet.Rate) {
	for i := range wire.Ends {
		if wire.Ends[1-i].Port != nil {
			wire.Ends[i].Rate = enforced(rates[1-i])
		}
		if t := wire.Ends[i].Tunnel; t != nil {
			c.uplink(host, t.Interface)
			c.hosts[host].Add(entry(wire, t))
		}
	}
	c.hosts[host].Add(wire)
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
const noLimit = 1000 * vnet.Gbit

func enforced(r vnet.Rate) vnet.Rate {
	if r >= noLimit {
		return 0
	}
	return r
}

// tunnel is one end of a stretch: its start (Forward) or its far end (Reverse).
func (c *compiler) tunnel(net *network, link vnet.VirtualLink, s stretch, dir vnet.Direction) *Tunnel {
	near, far := portOf(s.out, s.from), portOf(s.in, s.to)
	if dir == vnet.Reverse {
		near, far = far, near
	}
	return &Tunnel{
		VNI: s.vni, Interface: near.Interface, Local: near.Address, Remote: far.Address,
		MTU: net.mtu, Class: net.class(c.sub, link, dir),
	}
}

// uplink makes sure that a host shapes the interface a tunnel leaves by.
func (c *compiler) uplink(host vnet.HostID, device string) {
	if slices.ContainsFunc(c.hosts[host].Uplinks, func(u Uplink) bool { return u.Interface == device }) {
		return
	}
	u := Uplink{Interface: device}
	for _, l := range c.sub.Links {
		for i, end := range l.Ends {
			if end == string(host) && l.Ports[i].Interface == device {
				u.Capacity = max(u.Capacity, Outer(l.Capacity))
				u.Leases = max(u.Leases, Outer(l.Leasable()))
			}
		}
	}
	c.hosts[host].Add(u)
}

// stretches cuts a virtual link's path at the hosts it passes.
func (c *compiler) stretches(l vnet.Lease, link string, from vnet.HostID) ([]stretch, error) {
	cuts, err := Stretches(c.sub, from, l.Mapping.Links[link])
	if err != nil {
		return nil, err
	}
	if len(cuts) != len(l.VNIs[link]) {
		return nil, fmt.Errorf("has %d tunnels and %d identifiers", len(cuts), len(l.VNIs[link]))
	}
	list := make([]stretch, len(cuts))
	for i, hops := range cuts {
		first, last := hops[0], hops[len(hops)-1]
		list[i] = stretch{
			from: vnet.HostID(first.From()), to: vnet.HostID(last.To()),
			out: first.Link, in: last.Link, vni: l.VNIs[link][i],
		}
	}
	return list, nil
}

// Stretches cuts a path at the hosts it passes: each piece becomes one tunnel
// and needs one VNI.
func Stretches(sub vnet.Substrate, from vnet.HostID, path vnet.Path) ([][]vnet.Hop, error) {
	hops, err := sub.Walk(from, path)
	if err != nil {
		return nil, err
	}
	var cuts [][]vnet.Hop
	var piece []vnet.Hop
	for _, hop := range hops {
		piece = append(piece, hop)
		if _, isHost := sub.HostOf(hop.To()); isHost {
			cuts, piece = append(cuts, piece), nil
		}
	}
	if len(piece) > 0 {
		return nil, fmt.Errorf("path from %s ends in switch %s", from, piece[len(piece)-1].To())
	}
	return cuts, nil
}

func portOf(l vnet.SubstrateLink, host vnet.HostID) vnet.Port {
	if l.Ends[0] == string(host) {
		return l.Ports[0]
	}
	return l.Ports[1]
}

func wholePages(b vnet.Bytes) vnet.Bytes {
	const page = 4096
	return (b + page - 1) / page * page
}

// names lists what the nodes of the network can resolve.
func (n *network) names() []Name {
	var names []Name
	for _, node := range n.top.All() {
		names = append(names, Name{Name: node.Name, Address: n.address(node.Name)})
	}
	slices.SortFunc(names, func(a, b Name) int { return strings.Compare(a.Name, b.Name) })
	return names
}

func (n *network) address(node string) netip.Addr { return n.lease.Addresses[node] }
