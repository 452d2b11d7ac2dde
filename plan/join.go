package plan

import (
	"fmt"
	"net/netip"
	"slices"

	"sublet/vnet"
)

// Join is a node that a machine becomes by a tunnel of WireGuard: a device in the
// node's namespace, which is the provider's, and a port of UDP of the host. Keys
// are no part of it, since they stay on the host. Built by datapath/join.
type Join struct {
	Lease   vnet.LeaseID   `json:"lease"`
	Node    string         `json:"node"`
	Serial  uint64         `json:"serial"`  // of the lease: keys of a former one of its name are of no use
	At      netip.AddrPort `json:"at"`      // of the host, where the machine reaches it
	Address netip.Addr     `json:"address"` // of the node, and so of the machine
	Others  []netip.Addr   `json:"others"`  // of the network, sorted
	MTU     int            `json:"mtu"`     // within the tunnel
	Devices []string       `json:"devices"` // of the node's links, sorted
}

// JoinHeaders are what WireGuard puts around a packet in IPv4 or IPv6: 40, 8, and
// 32 of its own.
const JoinHeaders = 80

// Kind of the section.
func (Join) Kind() Kind { return KindJoin }

// Key is the namespace.
func (j Join) Key() string { return Namespace(j.Lease, j.Node) }

// LeaseID is the lease that it is of.
func (j Join) LeaseID() vnet.LeaseID { return j.Lease }

// Meet is the item itself: there is no amount in it.
func (j Join) Meet(Item) Item { return j }

func (j Join) String() string {
	return fmt.Sprintf("%s %s at %s mtu %d serial %d on %v of %v", j.Key(), j.Address, j.At, j.MTU, j.Serial, j.Devices, j.Others)
}

// join is the item of a node that a machine becomes.
func (c *Compiler) join(net *network, node vnet.VirtualNode) (Join, error) {
	place, ok := c.sub.JoinOf(node.Join)
	port, has := net.lease.Mapping.Joins[node.Name]
	if !ok || !has {
		return Join{}, fmt.Errorf("node %s: there is no place to join %q for it", node.Name, node.Join)
	}
	j := Join{
		Lease: net.lease.ID(), Node: node.Name, Serial: net.lease.Serial, At: netip.AddrPortFrom(place.Address, port),
		Address: net.address(node.Name), MTU: min(net.mtu, DefaultWire-JoinHeaders),
	}
	for _, i := range net.ports[node.Name] {
		j.Devices = append(j.Devices, i.device)
	}
	slices.Sort(j.Devices)
	for other, all := range net.all {
		for _, a := range all {
			if other != node.Name && a.Is4() {
				j.Others = append(j.Others, a)
			}
		}
	}
	slices.SortFunc(j.Others, netip.Addr.Compare)
	j.Others = slices.Compact(j.Others)
	return j, nil
}

// DefaultWire is the MTU that is counted on between a host and a machine that joins.
const DefaultWire = 1500

// asked are the nodes that are asked whether they reach each other: not those that
// a machine becomes, which comes and goes as its user likes.
func (n *network) asked() (list []vnet.VirtualNode) {
	for _, node := range n.top.All() {
		if node.Join == "" {
			list = append(list, node)
		}
	}
	return list
}

// askedLinks are those between nodes that are asked.
func (n *network) askedLinks() (list []vnet.VirtualLink) {
	joins := make(map[string]bool)
	for _, node := range n.top.Nodes {
		joins[node.Name] = node.Join != ""
	}
	for _, l := range n.top.Links {
		if !joins[l.Ends[0]] && !joins[l.Ends[1]] {
			list = append(list, l)
		}
	}
	return list
}
