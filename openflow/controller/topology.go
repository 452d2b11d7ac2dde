package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Topology is what a Network knows, in order.
type Topology struct {
	Switches []uint64
	Links    []TopologyLink
	Stations []TopologyStation
}

// TopologyPort is a port of a switch and its speed, in kbit/s; 0: unknown.
type TopologyPort struct {
	DatapathID uint64
	Port       uint32
	Speed      uint32
}

// TopologyLink joins two ports, of which the lower stands first.
type TopologyLink struct{ Ends [2]TopologyPort }

// TopologyStation is who has an address.
type TopologyStation struct {
	Address uint64
	At      TopologyPort
}

func station48(a uint64) string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", byte(a>>40), byte(a>>32), byte(a>>24), byte(a>>16), byte(a>>8), byte(a))
}

func (n *Network) topology(_ time.Time) (t Topology) {
	for dpid, m := range n.switches {
		t.Switches = append(t.Switches, dpid)
		for number, p := range m.ports {
			at := place{dpid, number}
			if other, ok := n.peer(at, p); ok && compare(at, other) < 0 {
				t.Links = append(t.Links, TopologyLink{[2]TopologyPort{n.described(at), n.described(other)}})
			}
		}
	}
	for a, h := range n.hosts {
		t.Stations = append(t.Stations, TopologyStation{a, n.described(h.at)})
	}
	slices.Sort(t.Switches)
	slices.SortFunc(t.Links, func(a, b TopologyLink) int {
		return cmp.Or(cmp.Compare(a.Ends[0].DatapathID, b.Ends[0].DatapathID), cmp.Compare(a.Ends[0].Port, b.Ends[0].Port))
	})
	slices.SortFunc(t.Stations, func(a, b TopologyStation) int { return cmp.Compare(a.Address, b.Address) })
	return t
}

func compare(a, b place) int { return cmp.Or(cmp.Compare(a.dpid, b.dpid), cmp.Compare(a.port, b.port)) }

func (n *Network) described(at place) TopologyPort {
	p := TopologyPort{DatapathID: at.dpid, Port: at.port}
	if m := n.switches[at.dpid]; m != nil && m.ports[at.port] != nil {
		p.Speed = m.ports[at.port].CurrentSpeed
	}
	return p
}
