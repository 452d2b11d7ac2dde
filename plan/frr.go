package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"sublet/vnet"
)

// speaksAny says whether a protocol finds ways by talking to neighbours.
func speaksAny(p vnet.Protocol) bool { return p.Speaks(true) != "" || p.Speaks(false) != "" }

// peers says whether a node's neighbour at an interface speaks its protocol of a
// family. BGP's sessions need addresses that both ends have.
func (n *network) peers(i nodeInterface, name string, is4 bool) bool {
	p := n.routers[name].Speaks(is4)
	if i.station != nil || n.linkClass[i.near.link] != "" || p == "" || n.routers[i.peer].Speaks(is4) != p {
		return false
	}
	return p != vnet.ProtocolBGP || n.peerAddress(i, is4).IsValid() && n.peerAddress(nodeInterface{peer: name, far: i.near}, is4).IsValid()
}

// peerAddress is the address of a neighbour for a session of BGP: of its port,
// or of IPv4 its own.
func (n *network) peerAddress(i nodeInterface, is4 bool) netip.Addr {
	for _, p := range n.endAddresses(i.far) {
		if p.Addr().Is4() == is4 {
			return p.Addr()
		}
	}
	if is4 {
		return n.address(i.peer)
	}
	return netip.Addr{}
}

// usualOSPF says that a router speaks OSPF without areas and costs, and is told
// nothing else.
func (n *network) usualOSPF(name string) bool {
	return n.numbers[name].FRR == "" && !slices.ContainsFunc(n.ports[name], func(i nodeInterface) bool {
		l := n.linkAt(i)
		return l.Area != 0 || l.Cost != 0
	})
}

func (n *network) linkAt(i nodeInterface) vnet.VirtualLink {
	l, _ := n.top.Link(i.near.link)
	return l
}

// frr says which daemons a router runs and what they are told. What they begin
// with is made of names, addresses and numbers: a tenant's text stays apart.
func (n *network) frr(name string) *FRR {
	f := &FRR{Daemons: []Daemon{{"zebra", fmt.Sprintf("hostname %s\nip forwarding\nipv6 forwarding\n", name)}}}
	switch n.routers[name] {
	case vnet.ProtocolOSPF:
		f.Daemons = append(f.Daemons, Daemon{"ospfd", n.ospfd(name)})
	case vnet.ProtocolOSPF6:
		f.Daemons = append(f.Daemons, Daemon{"ospfd", n.ospfd(name)}, Daemon{"ospf6d", n.ospf6d(name)})
	case vnet.ProtocolBGP:
		f.Daemons = append(f.Daemons, Daemon{"bgpd", n.bgpd(name)})
	case vnet.ProtocolISIS:
		f.Daemons = append(f.Daemons, Daemon{"isisd", n.isisd(name)})
	}
	f.own(n.numbers[name].FRR)
	return f
}

// own adds a tenant's configuration, and the daemons that it is for.
func (f *FRR) own(config string) {
	f.Config = vnet.FRRText(config)
	for _, name := range vnet.FRRDaemons(f.Config) {
		if !slices.ContainsFunc(f.Daemons, func(d Daemon) bool { return d.Name == name }) {
			f.Daemons = append(f.Daemons, Daemon{Name: name})
		}
	}
}

// sortedPorts are a node's interfaces, by name.
func (n *network) sortedPorts(name string) []nodeInterface {
	return slices.SortedFunc(slices.Values(n.ports[name]), func(a, b nodeInterface) int { return byDevice(a.device, b.device) })
}

// Hello and dead interval of OSPF are the shortest whole seconds that tolerate
// three lost packets (RFC 2328 section 9.5 wants both equal on all neighbours).
// The times of ways are those of datapath/vxrouter's OSPF.
const (
	ospfTimers = "hello-interval 1\n%[1]sdead-interval 4\n%[1]sretransmit-interval 1\n"
	throttle   = " timers throttle spf 10 50 1000\n"
)

// ospfd is OSPF for IPv4, point to point: neighbours' addresses, of which an
// unnumbered interface announces nothing, are told as connected routes.
func (n *network) ospfd(name string) string {
	var b strings.Builder
	for _, i := range n.sortedPorts(name) {
		l := n.linkAt(i)
		fmt.Fprintf(&b, "interface %s\n ip ospf network point-to-point\n", i.device)
		if n.peers(i, name, true) {
			fmt.Fprintf(&b, " ip ospf "+ospfTimers, " ip ospf ")
		} else {
			b.WriteString(" ip ospf passive\n")
		}
		if l.Cost != 0 {
			fmt.Fprintf(&b, " ip ospf cost %d\n", l.Cost)
		}
		fmt.Fprintf(&b, " ip ospf area %d\n", l.Area)
	}
	fmt.Fprintf(&b, "router ospf\n ospf router-id %s\n redistribute connected metric-type 1\n%s timers throttle lsa all 100\n timers lsa min-arrival 50\n", n.address(name), throttle)
	return b.String()
}

// ospf6d is OSPF for IPv6.
func (n *network) ospf6d(name string) string {
	var b strings.Builder
	for _, i := range n.sortedPorts(name) {
		l := n.linkAt(i)
		fmt.Fprintf(&b, "interface %s\n ipv6 ospf6 area %d\n ipv6 ospf6 network point-to-point\n", i.device, l.Area)
		if n.peers(i, name, false) {
			fmt.Fprintf(&b, " ipv6 ospf6 "+ospfTimers, " ipv6 ospf6 ")
		} else {
			b.WriteString(" ipv6 ospf6 passive\n")
		}
		if l.Cost != 0 {
			fmt.Fprintf(&b, " ipv6 ospf6 cost %d\n", l.Cost)
		}
	}
	fmt.Fprintf(&b, "router ospf6\n ospf6 router-id %s\n redistribute connected\n%s timers lsa min-arrival 50\n", n.address(name), throttle)
	return b.String()
}

// peer is a neighbour to which a router has a session of BGP; a far one may be
// any number of links away.
type peer struct {
	address netip.Addr
	as      uint32
	far     bool
}

// bgpPeers are those that the request states, and those at links.
func (n *network) bgpPeers(name string, is4 bool) (list []peer) {
	for _, b := range n.numbers[name].Neighbors {
		if b.Address.Is4() == is4 {
			list = append(list, peer{b.Address, b.AS, true})
		}
	}
	for _, i := range n.sortedPorts(name) {
		if !n.peers(i, name, is4) {
			continue
		}
		p := peer{n.peerAddress(i, is4), n.numbers[i.peer].AS, false}
		if !slices.ContainsFunc(list, func(q peer) bool { return q.address == p.address }) { // by several links, or stated
			list = append(list, p)
		}
	}
	return list
}

// bgpd is BGP with the neighbours at the router's links: of other autonomous
// systems, or of the same, whose routers hand on to each other what they hear,
// each naming itself as next hop, so that no other protocol is needed.
func (n *network) bgpd(name string) string {
	own := n.numbers[name].AS
	peers := [2][]peer{n.bgpPeers(name, true), n.bgpPeers(name, false)}
	var b strings.Builder
	fmt.Fprintf(&b, "router bgp %d\n bgp router-id %s\n no bgp default ipv4-unicast\n no bgp ebgp-requires-policy\n timers bgp 1 3\n", own, n.address(name))
	for _, p := range slices.Concat(peers[0], peers[1]) {
		fmt.Fprintf(&b, " neighbor %[1]s remote-as %[2]d\n neighbor %[1]s timers connect 1\n neighbor %[1]s advertisement-interval 0\n", p.address, p.as)
		switch {
		case p.as == own:
		case p.far:
			fmt.Fprintf(&b, " neighbor %s ebgp-multihop 255\n", p.address)
		default:
			fmt.Fprintf(&b, " neighbor %s disable-connected-check\n", p.address)
		}
	}
	for family, list := range peers {
		fmt.Fprintf(&b, " address-family %s unicast\n  redistribute connected\n", [2]string{"ipv4", "ipv6"}[family])
		for _, p := range list {
			fmt.Fprintf(&b, "  neighbor %s activate\n", p.address)
			if p.as == own {
				fmt.Fprintf(&b, "  neighbor %[1]s route-reflector-client\n  neighbor %[1]s next-hop-self force\n", p.address)
			}
		}
		b.WriteString(" exit-address-family\n")
	}
	return b.String()
}
