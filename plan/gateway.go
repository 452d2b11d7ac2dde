package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// Gateway is the way out of a router: a device in its namespace on an interface
// of the host, with an address outside, and the rules of what passes. Its
// namespace is the provider's. Built by datapath/nat.
type Gateway struct {
	Lease     vnet.LeaseID     `json:"lease"`
	Node      string           `json:"node"`
	Interface string           `json:"interface"` // of the host
	Address   netip.Addr       `json:"address"`   // outside: what leaves has it
	Via       netip.Addr       `json:"via"`       // next hop outside
	Refuse    []vnet.AddrRange `json:"refuse"`    // nobody reaches, beside the host's own addresses
	Publish   []Published      `json:"publish,omitempty"`
}

// Published is a port of the gateway's address that leads to a node.
type Published struct {
	Outside uint16     `json:"outside"`
	Address netip.Addr `json:"address"`
	Port    uint16     `json:"port"`
	UDP     bool       `json:"udp,omitempty"`
}

func (p Published) String() string {
	protocol := "tcp"
	if p.UDP {
		protocol = "udp"
	}
	return fmt.Sprintf("%s %d %s %d", protocol, p.Outside, p.Address, p.Port)
}

// Kind of the section.
func (Gateway) Kind() Kind { return KindGateway }

// Key is the namespace.
func (g Gateway) Key() string { return Namespace(g.Lease, g.Node) }

// LeaseID is the lease that it is of.
func (g Gateway) LeaseID() vnet.LeaseID { return g.Lease }

// Meet is the gateway itself: there is no amount in it.
func (g Gateway) Meet(Item) Item { return g }

func (g Gateway) String() string {
	s := fmt.Sprintf("%s %s by %s via %s refuse", g.Key(), g.Address, g.Interface, g.Via)
	for _, r := range g.Refuse {
		s += " " + r.String()
	}
	for _, p := range g.Publish {
		s += " publish " + p.String()
	}
	return s
}

// gateway is the item of a router with a way out.
func (c *Compiler) gateway(net *network, node vnet.VirtualNode) (Gateway, error) {
	way, ok := c.sub.NATOf(node.NAT)
	if !ok {
		return Gateway{}, fmt.Errorf("node %s: there is no way out %q", node.Name, node.NAT)
	}
	g := Gateway{
		Lease: net.lease.ID(), Node: node.Name, Interface: way.Interface,
		Address: net.lease.Mapping.Outside[node.Name], Via: way.Via, Refuse: c.refused(way),
	}
	for _, p := range node.Publish {
		if to := net.address(p.Node); to.IsValid() {
			g.Publish = append(g.Publish, Published{p.Outside, to, p.Port, p.UDP})
		}
	}
	slices.SortFunc(g.Publish, func(a, b Published) int { return cmp.Compare(a.String(), b.String()) })
	return g, nil
}

// refused lists what nobody reaches by a way out: its pool, what the operator
// states, and where hosts send tunnels to each other.
func (c *Compiler) refused(way vnet.NAT) []vnet.AddrRange {
	list := []vnet.AddrRange{way.Pool}
	for _, p := range way.Refuse {
		list = append(list, vnet.RangeOf(p))
	}
	for _, l := range c.sub.Links {
		for _, port := range l.Ports {
			if a := port.Address; a.Is4() {
				list = append(list, vnet.AddrRange{First: a, Last: a})
			}
		}
	}
	slices.SortFunc(list, func(a, b vnet.AddrRange) int {
		return cmp.Or(a.First.Compare(b.First), a.Last.Compare(b.Last))
	})
	return slices.Compact(list)
}

// outward is a node's first hop towards a way out: the one stated first among
// those it reaches; false: there is none, or it is one itself.
func (n *network) outward(from string, first map[string]nodeInterface) (nodeInterface, bool) {
	var way nodeInterface
	found := false
	for _, r := range n.top.Routers {
		if hop, reached := first[r.Name]; r.NAT != "" && r.Name == from {
			return nodeInterface{}, false
		} else if r.NAT != "" && reached && !found {
			way, found = hop, true
		}
	}
	return way, found
}
