package plan

import (
	"cmp"
	"net/netip"

	"sublet/vnet"
)

// network is a lease's running stage with what does not change over its life:
// link indexes and interface names, taken from the union of all stages.
type network struct {
	lease     vnet.Lease
	top       vnet.Topology
	whole     vnet.Topology               // of all stages, as requested
	index     map[string]int              // of a link in the union
	device    map[linkEnd]string          // interface of a link in its node
	metric    map[string]int              // of the routes to a link's peers
	routers   map[string]vnet.Protocol    // by name, in the running stage
	numbers   map[string]vnet.VirtualNode // routers, by name, in the running stage
	ports     map[string][]nodeInterface  // of a node, in the running stage
	linkClass map[string]string           // of traffic, by link of the running stage; "": all
	cut       map[linkEnd]bool            // ends of links that are down
	exits     map[string]string           // port of a switch that leads to its exit
	mtu       int

	chained   []vnet.VirtualLink        // segments of chains, which no other list of links has
	functions map[string]*vnet.Function // by node

	switches map[string]vnet.VirtualSwitch // of the running stage
	segment  map[string]*segment           // by switch
	subnet   map[string]netip.Prefix       // by switch
	loops    map[string]bool               // links that carry nothing
	trunks   map[string][]vnet.VirtualLink // links between switches that carry frames, by switch
	trees    map[string]map[string]vnet.VirtualLink

	all       map[string][]netip.Addr     // of a node; its own first
	within    map[netip.Addr]netip.Prefix // subnet of a port's own address
	byAddress map[netip.Addr]string       // node
	homes     map[string]linkEnd          // port that has a node's own address beside its other ones
	machines  map[string]bool             // nodes that are
	v6        bool                        // some port has an address of IPv6

	// Made when they are asked for.
	tables      map[string]VxRouter
	forwardings map[string]forwarding
	led         map[string]map[string]bool // by destination and node: the routes lead there
	strangers   map[string]bool            // nodes of which others answer than this host's, or none of the tenant's
	control     *Control                   // in band; nil: not asked for
}

// linkEnd is one end (0 or 1) of a virtual link.
type linkEnd struct {
	link string
	end  int
}

// nodeInterface is a node's way to a neighbour.
type nodeInterface struct {
	device, peer string
	near, far    linkEnd       // of the node and of the peer
	station      *vnet.Station // peer is a switch, and this the node's place there
}

func newNetwork(sub vnet.Substrate, l vnet.Lease) (*network, error) {
	return networkOn(sub, sub.Relays, l)
}

// networkOn is newNetwork on a substrate that is given as what walks it.
func networkOn(sub Walker, relays map[string]netip.Addr, l vnet.Lease) (*network, error) {
	whole := l.Request.Union()
	l.Mapping = l.Mapping.Controlled(whole)
	union := whole.Controlled()
	n := &network{
		lease: l, top: l.Topology().Controlled(), whole: whole,
		device:  make(map[linkEnd]string),
		routers: make(map[string]vnet.Protocol), numbers: make(map[string]vnet.VirtualNode),
		ports: make(map[string][]nodeInterface), cut: make(map[linkEnd]bool), linkClass: make(map[string]string), switches: make(map[string]vnet.VirtualSwitch),
		segment: make(map[string]*segment), subnet: make(map[string]netip.Prefix),
		strangers: make(map[string]bool),
		trunks:    make(map[string][]vnet.VirtualLink), trees: make(map[string]map[string]vnet.VirtualLink),
	}
	n.takeChains()
	n.number(union)
	n.segments()
	n.knowAddresses(union)
	n.subnets(union)
	for _, r := range n.top.Routers {
		n.routers[r.Name], n.numbers[r.Name] = r.Protocol, r
	}
	for _, node := range n.top.Nodes {
		n.strangers[node.Name] = node.Join != "" || node.Device != "" || isControlNode(node.Name)
	}
	for _, link := range n.top.Links {
		n.linkClass[link.Name] = link.Class
		for end, node := range link.Ends {
			n.cut[linkEnd{link.Name, end}] = link.Down
			n.connect(link, end, node)
			if s := n.segment[node]; s != nil {
				s.cut = s.cut || link.Down
			}
		}
	}
	mtu, err := innerMTU(sub, relays, l.Mapping, union.Links, l.Request.Chains)
	n.mtu = mtu
	return n, err
}

// connect notes one end of a link of the running stage.
func (n *network) connect(link vnet.VirtualLink, end int, node string) {
	peer := link.Ends[1-end]
	switch {
	case n.segment[node] == nil:
		near, far := linkEnd{link.Name, end}, linkEnd{link.Name, 1 - end}
		i := nodeInterface{device: n.device[near], peer: peer, near: near, far: far}
		if n.segment[peer] != nil {
			i.station = &vnet.Station{Node: node, Link: link, End: end}
		}
		n.ports[node] = append(n.ports[node], i)
	case n.segment[peer] != nil && !n.loops[link.Name]:
		n.trunks[node] = append(n.trunks[node], link)
	}
}

// number gives every link its index and its ends their interface names, which
// those that lead to exits follow, and parallel links different metrics.
func (n *network) number(union vnet.Topology) {
	numbers := n.lease.Numbers
	if numbers == nil {
		first := union.Numbering()
		numbers = &first
	}
	n.index, n.metric, n.exits = numbers.Links, numbers.Metrics, numbers.Exits
	for _, link := range union.Links {
		for end, name := range numbers.Interfaces[link.Name] {
			n.device[linkEnd{link.Name, end}] = name
		}
	}
}

// maxMTU is the largest a tenant sees: what every tool expects of Ethernet.
const maxMTU = 1500

// innerMTU is the largest packet that no link of the network has to fragment.
func innerMTU(sub Walker, relays map[string]netip.Addr, m vnet.Mapping, links []vnet.VirtualLink, chains []vnet.Chain) (int, error) {
	mtu, more, chained := maxMTU, chainRoom(chains), len(chains) > 0
	for _, link := range links {
		for _, share := range m.Paths(link.Name) {
			hops, err := sub.Walk(m.Nodes[link.Ends[0]], share.Path)
			if err != nil {
				return 0, err
			}
			room := more + listRoom(relays, hops)
			if link.KeepsOrder() {
				room += TagBytes
			}
			for _, hop := range hops {
				mtu = min(mtu, hop.Link.WireMTU()-room-headersOf(hop.Link, chained))
			}
		}
	}
	return mtu, nil
}

// headersOf is what tunnels that take a link add to frames. Packets of chains have
// headers of their own there.
func headersOf(l vnet.SubstrateLink, chained bool) int {
	if chained {
		return OuterHeaders
	}
	return l.Encapsulation.Headers()
}

// chainRoom is what packets of chains have more around them than those of links.
func chainRoom(chains []vnet.Chain) int {
	const gpe = 8
	room := 0
	for _, c := range chains {
		more := c.Metadata.Size()
		if c.Transport == vnet.TransportGPE {
			more += gpe
		}
		room = max(room, more)
	}
	return room
}

// port is the tenant's side of one end of a link.
func (n *network) port(link vnet.VirtualLink, end int) *Port {
	if link.Chain != "" {
		return n.chainPort(link, end)
	}
	node, peer := link.Ends[end], link.Ends[1-end]
	p := &Port{Interface: n.device[linkEnd{link.Name, end}], MTU: n.mtu}
	if n.segment[node] != nil {
		p.Namespace = SwitchNamespace(n.lease.ID(), node, cmp.Or(n.switches[node].Kind, vnet.SwitchKernel))
		p.Queues = n.queues(link, end)
		return p
	}
	p.Namespace, p.Metric = Namespace(n.lease.ID(), node), n.metric[link.Name]
	if link.Class != "" {
		p.Metric += classMetric
	}
	n.addressPort(p, linkEnd{link.Name, end}, node, peer)
	return p
}

// single is the prefix of one address.
func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// rates are the allocated ones, in whole bytes per second.
func (n *network) rates(link vnet.VirtualLink) [2]vnet.Rate {
	r := n.lease.Rates[link.Name]
	return [2]vnet.Rate{r[0].WholeBytesDown(), r[1].WholeBytesDown()}
}

// leastRate keeps HTB happy where no minimum is promised; it cannot hold 0.
const leastRate = 8 * vnet.Kbit

// class is the share of the physical interface that one direction of a path gets at a
// tunnel.
func (p pathPlan) class(h tunnelHop, dir vnet.Direction) Class {
	ask, alloc := p.link.Bandwidth[dir], p.rates()[dir]
	if ask.BestEffort() {
		return Class{Guaranteed: leastRate, Ceil: bestEffortCeil, BestEffort: true}
	}
	headers := headersOf(h.out, p.link.Chain != "")
	guaranteed := max(outer(p.share.Of(ask.Min), headers), leastRate)
	return Class{Guaranteed: guaranteed, Ceil: max(outer(alloc, headers), guaranteed)}
}

// bestEffortCeil is above any interface here; what it may really take is
// whatever the classes above it leave.
const bestEffortCeil = 100 * vnet.Gbit

// Ports gives, by link name, the tenant's side of both ends of every link of a
// lease's running stage.
func Ports(sub vnet.Substrate, l vnet.Lease) (map[string][2]Port, error) {
	n, err := newNetwork(sub, l)
	if err != nil {
		return nil, err
	}
	ports := make(map[string][2]Port, len(n.top.Links))
	for _, link := range n.top.Links {
		ports[link.Name] = [2]Port{*n.port(link, 0), *n.port(link, 1)}
	}
	return ports, nil
}
