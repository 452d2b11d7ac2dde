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
	plans, err := NewCompiler(sub.Index()).Compile(leases)
	if err != nil {
		return nil, err
	}
	for _, h := range sub.Hosts {
		if _, ok := plans[h.Name]; !ok {
			plans[h.Name] = Host{Host: h.Name}
		}
	}
	return plans, nil
}

// Compiler compiles leases on one substrate, of which it keeps what does not
// change from lease to lease. It is not safe for concurrent use.
type Compiler struct {
	sub   vnet.Indexed
	pins  *pins // nil: senders choose no paths
	hosts map[vnet.HostID]*Host
}

// NewCompiler prepares a substrate.
func NewCompiler(sub vnet.Indexed) *Compiler {
	return &Compiler{sub: sub, pins: newPins(sub.Substrate)}
}

// Compile is the package's Compile for those hosts that are to have something.
func (c *Compiler) Compile(leases []vnet.Lease) (map[vnet.HostID]Host, error) {
	c.hosts = make(map[vnet.HostID]*Host)
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

// host is a host's plan so far; nil: there is no such host.
func (c *Compiler) host(name vnet.HostID) *Host {
	if c.hosts[name] == nil {
		if _, ok := c.sub.HostOf(string(name)); !ok {
			return nil
		}
		c.hosts[name] = &Host{Host: name}
	}
	return c.hosts[name]
}

// lease adds one lease's items to the hosts that carry it.
func (c *Compiler) lease(l vnet.Lease) error {
	net, err := networkOn(c.sub, c.sub.Relays, l)
	if err != nil {
		return err
	}
	for _, node := range net.top.All() {
		host := c.host(l.Mapping.Nodes[node.Name])
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
func (c *Compiler) switches(net *network) error {
	for _, s := range net.top.Switches {
		host := c.host(net.lease.Mapping.Nodes[s.Name])
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
	hops     []vnet.Hop
	lists    [2][]netip.Addr // relays by direction; nil: the fabric's own way
}

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
	if slices.ContainsFunc(c.host(host).Uplinks, func(u Uplink) bool { return u.Interface == device }) {
		return
	}
	u := Uplink{Interface: device}
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

// stretchesOf gives each piece of a path its identifier.
func stretchesOf(cuts [][]vnet.Hop, numbers []vnet.VNI) []stretch {
	list := make([]stretch, len(cuts))
	for i, hops := range cuts {
		first, last := hops[0], hops[len(hops)-1]
		list[i] = stretch{
			from: vnet.HostID(first.From()), to: vnet.HostID(last.To()),
			out: first.Link, in: last.Link, vni: numbers[i], hops: hops,
		}
	}
	return list
}

// Walker is a vnet.Substrate or a vnet.Indexed.
type Walker interface {
	HostOf(name string) (vnet.SubstrateNode, bool)
	Walk(from vnet.HostID, path vnet.Path) ([]vnet.Hop, error)
}

// AllStretches are those of all paths of a mapped link, one path after another.
func AllStretches(sub Walker, m vnet.Mapping, link vnet.VirtualLink) ([][]vnet.Hop, error) {
	var all [][]vnet.Hop
	for _, share := range m.Paths(link.Name) {
		cuts, err := Stretches(sub, m.Nodes[link.Ends[0]], share.Path)
		if err != nil {
			return nil, err
		}
		all = append(all, cuts...)
	}
	return all, nil
}

// Stretches cuts a path at the hosts it passes: each piece becomes one tunnel
// and needs one VNI.
func Stretches(sub Walker, from vnet.HostID, path vnet.Path) ([][]vnet.Hop, error) {
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
