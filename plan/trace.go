package plan

import (
	"fmt"
	"slices"
	"strings"

	"sublet/vnet"
)

// Crossing is one virtual link on a packet's way.
type Crossing struct {
	From      string         `json:"from"` // a node or switch
	To        string         `json:"to"`
	Link      string         `json:"link"`
	Direction vnet.Direction `json:"-"`
	Why       string         `json:"why"` // of From to send it there
	Wires     []Wire         `json:"wires"`
}

// Wire is a crossing's part on one host: a frame enters by end In and leaves
// by the other.
type Wire struct {
	Host vnet.HostID
	VxLink
	In int
}

// Out is the end that the frame leaves by.
func (w Wire) Out() End { return w.Ends[1-w.In] }

// Trace follows a packet from one node of a running lease to another, as its
// plan has it: by routes of fewest hops, which routers that speak OSPF find by
// themselves. What the tenant changed inside their nodes is not seen.
func Trace(sub vnet.Substrate, l vnet.Lease, from, to string) ([]Crossing, error) {
	n, err := newNetwork(sub, l)
	if err != nil {
		return nil, err
	}
	plans, err := Compile(sub, []vnet.Lease{l})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{from, to} {
		if !slices.ContainsFunc(n.top.All(), func(v vnet.VirtualNode) bool { return v.Name == name }) {
			return nil, fmt.Errorf("%s has no node %q", l.ID(), name)
		}
	}
	var way []Crossing
	for at, first := from, true; at != to; first = false {
		if _, forwards := n.routers[at]; !forwards && !first {
			return way, fmt.Errorf("%s forwards nothing", at)
		}
		next, ok := n.firstHops(at)[to]
		if !ok {
			return way, fmt.Errorf("%s has no way to %s", at, to)
		}
		links, err := n.links(at, next)
		if err != nil {
			return way, err
		}
		links[0].Why = n.why(at, next, to)
		way = append(way, links...)
		at = next.peer
	}
	for i := range way {
		way[i].Wires = wires(n, plans, way[i])
	}
	return way, nil
}

// why says what rule sends a packet on.
func (n *network) why(at string, next nodeInterface, to string) string {
	switch {
	case next.peer == to:
		return fmt.Sprintf("%s is on the link", n.address(to))
	case speaksAny(n.routers[at]):
		return fmt.Sprintf("to %s by %s, fewest links, via %s", n.address(to), strings.ToUpper(string(n.routers[at])), n.via(next, true))
	}
	return fmt.Sprintf("route to %s via %s", n.address(to), n.via(next, true))
}

// links are those from a node to the next, one or several through switches.
func (n *network) links(at string, next nodeInterface) ([]Crossing, error) {
	var first Crossing
	for _, l := range n.top.Links {
		for end, node := range l.Ends {
			if node == at && n.device[linkEnd{l.Name, end}] == next.device {
				first = Crossing{From: at, To: l.Ends[1-end], Link: l.Name, Direction: vnet.Directions[end]}
			}
		}
	}
	if first.To == next.peer {
		return []Crossing{first}, nil
	}
	rest, ok := n.through(first.To, next.peer, map[string]bool{first.To: true})
	if !ok {
		return nil, fmt.Errorf("switch %s does not lead to %s", first.To, next.peer)
	}
	return append([]Crossing{first}, rest...), nil
}

// through finds a way from a switch to a node by switches only; loops are cut.
func (n *network) through(at, to string, seen map[string]bool) ([]Crossing, bool) {
	for _, l := range n.top.Links {
		for end, name := range l.Ends {
			other := l.Ends[1-end]
			if name != at || seen[other] || n.loops[l.Name] {
				continue
			}
			c := Crossing{From: at, To: other, Link: l.Name, Direction: vnet.Directions[end], Why: "switched"}
			if other == to {
				return []Crossing{c}, true
			}
			if n.segment[other] == nil {
				continue
			}
			seen[other] = true
			if rest, ok := n.through(other, to, seen); ok {
				return append([]Crossing{c}, rest...), true
			}
		}
	}
	return nil, false
}

// wires are a crossing's parts in the packet's order.
func wires(n *network, plans map[vnet.HostID]Host, c Crossing) []Wire {
	var list []Wire
	host, in := n.lease.Mapping.Nodes[c.From], 0
	if c.Direction == vnet.Reverse {
		in = 1
	}
	for range len(n.lease.VNIs[c.Link]) + 1 {
		w, ok := wireOn(plans, host, c.Link, in, list)
		if !ok {
			break
		}
		list = append(list, w)
		t := w.Out().Tunnel
		if t == nil {
			break
		}
		host = farHost(plans, w, t)
	}
	return list
}

// wireOn is the wire of a link on a host, the one that the last tunnel leads to.
func wireOn(plans map[vnet.HostID]Host, host vnet.HostID, link string, in int, before []Wire) (Wire, bool) {
	for _, l := range Of[VxLink](plans[host]) {
		if l.Link != link {
			continue
		}
		end := l.Ends[in]
		if len(before) == 0 && end.Port != nil {
			return Wire{host, l, in}, true
		}
		if len(before) > 0 && end.Tunnel != nil && end.Tunnel.VNI == before[len(before)-1].Out().Tunnel.VNI {
			return Wire{host, l, in}, true
		}
	}
	return Wire{}, false
}

// farHost is the host that has a tunnel's other end.
func farHost(plans map[vnet.HostID]Host, near Wire, t *Tunnel) vnet.HostID {
	for name, h := range plans {
		if name == near.Host {
			continue
		}
		for _, l := range Of[VxLink](h) {
			for _, end := range l.Ends {
				if end.Tunnel != nil && end.Tunnel.VNI == t.VNI {
					return name
				}
			}
		}
	}
	return ""
}
