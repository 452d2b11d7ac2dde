package plan

import (
	"fmt"
	"net/netip"

	"sublet/vnet"
)

// tunnelHop is the part of a path between two hosts that run agents: one tunnel.
type tunnelHop struct {
	from, to vnet.HostID
	out, in  vnet.SubstrateLink // first and last link
	vni      vnet.VNI
	hops     []vnet.Hop
	lists    [2][]netip.Addr // relays by direction; nil: the fabric's own way
}

// encapsulation is that of the tunnel; "": VXLAN. All its links have the same.
func (h tunnelHop) encapsulation() vnet.Encapsulation {
	if h.out.Encapsulation == vnet.VXLAN {
		return ""
	}
	return h.out.Encapsulation
}

// tunnelHopsOf gives each piece of a path its identifier.
func tunnelHopsOf(cuts [][]vnet.Hop, numbers []vnet.VNI) []tunnelHop {
	list := make([]tunnelHop, len(cuts))
	for i, hops := range cuts {
		first, last := hops[0], hops[len(hops)-1]
		list[i] = tunnelHop{
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

// AllTunnelHops are those of all paths of a mapped link, one path after another.
func AllTunnelHops(sub Walker, m vnet.Mapping, link vnet.VirtualLink) ([][]vnet.Hop, error) {
	var all [][]vnet.Hop
	for _, share := range m.Paths(link.Name) {
		cuts, err := TunnelHops(sub, m.Nodes[link.Ends[0]], share.Path)
		if err != nil {
			return nil, err
		}
		all = append(all, cuts...)
	}
	return all, nil
}

// TunnelHops cuts a path at the hosts it passes: each piece becomes one tunnel
// and needs one VNI.
func TunnelHops(sub Walker, from vnet.HostID, path vnet.Path) ([][]vnet.Hop, error) {
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
