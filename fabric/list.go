package fabric

import "fmt"

// Relay is one header of a list: a switch, or, where the fabric would not
// take a link by itself, the far end of that link (an adjacency).
type Relay struct {
	Node int
	Link int // of the adjacency; None: any way the fabric forwards to Node
}

// None is no link.
const None = -1

// List is the relays of one path in the order in which they are visited. An
// empty list is the path the fabric would take by itself.
type List []Relay

// Pin is the shortest list whose packets follow a path whatever the switches
// do with equal-cost paths: from each relay on, the longest part that is the
// only shortest path to its end. A part of an only shortest path is one, too,
// so to take the longest is to take the fewest. The last part ends at the
// path's last switch, which needs no relay, unless its last link is an
// adjacency.
func (f *Fabric) Pin(p Path) List {
	var list List
	last := len(p.Nodes) - 1
	for at := 0; at < last; {
		end := f.reach(p, at)
		if end == at { // not even one link is the fabric's own choice
			end++
			list = append(list, Relay{p.Nodes[end], p.Links[at]})
		} else if end < last {
			list = append(list, Relay{p.Nodes[end], None})
		}
		at = end
	}
	return list
}

// reach is the index of the last switch of a path to which the fabric has no
// other shortest way than the path's, from the one at an index.
func (f *Fabric) reach(p Path, at int) int {
	end, cost := at, 0
	for i := at; i < len(p.Links); i++ {
		cost += f.cost(p, i)
		d := f.distancesTo(p.Nodes[i+1])
		if d.paths[p.Nodes[at]] != 1 || int(d.dist[p.Nodes[at]]) != cost {
			break
		}
		end = i + 1
	}
	return end
}

// cost of a path's i-th link.
func (f *Fabric) cost(p Path, i int) int {
	for _, a := range f.leaving[p.Nodes[i]] {
		if a.To == p.Nodes[i+1] && a.Link == p.Links[i] {
			return a.Cost
		}
	}
	return maxCost + 1
}

// Follow proves a list hop by hop: it forwards a packet with the list from the
// path's first switch to its last as every switch would, and fails where a
// switch has a choice or leaves the path.
func (f *Fabric) Follow(p Path, list List) error {
	at := 0
	for _, r := range list {
		var err error
		if r.Link != None {
			at, err = f.adjacent(p, at, r)
		} else {
			at, err = f.forward(p, at, r.Node)
		}
		if err != nil {
			return err
		}
	}
	at, err := f.forward(p, at, p.Nodes[len(p.Nodes)-1])
	if err == nil && at != len(p.Nodes)-1 {
		err = fmt.Errorf("the packet ends at switch %d", p.Nodes[at])
	}
	return err
}

// adjacent takes the link whose far end the packet is addressed to.
func (f *Fabric) adjacent(p Path, at int, r Relay) (int, error) {
	if at == len(p.Links) || p.Links[at] != r.Link || p.Nodes[at+1] != r.Node {
		return at, fmt.Errorf("switch %d is not on link %d of the path", p.Nodes[at], r.Link)
	}
	return at + 1, nil
}

// forward moves the packet along the path until it is at the target.
func (f *Fabric) forward(p Path, at, target int) (int, error) {
	for p.Nodes[at] != target {
		next := f.Next(p.Nodes[at], target)
		switch {
		case len(next) == 0:
			return at, fmt.Errorf("switch %d does not reach %d", p.Nodes[at], target)
		case len(next) > 1:
			return at, fmt.Errorf("switch %d has %d ways to %d", p.Nodes[at], len(next), target)
		case at == len(p.Links) || next[0].To != p.Nodes[at+1] || next[0].Link != p.Links[at]:
			return at, fmt.Errorf("switch %d forwards to %d, which is not the path's next", p.Nodes[at], next[0].To)
		}
		at++
	}
	return at, nil
}
