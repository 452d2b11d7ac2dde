// Package graph is the substrate as a graph: which walks through hosts and
// switches a virtual link may take, and the shortest of them under a
// condition on every link and a bound on latency.
//
// Hosts relay; switches forward by themselves, so from the switch at which a
// walk enters the fabric to the one at which it leaves it follows the one
// shortest path the fabric uses (see Fabric), unless its switches are relays,
// by which senders choose the path (see Pinned), or all have entries for it. Between two hosts of a walk lies
// either a direct link, or an access link, a fabric path and an access link.
package graph

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sublet/vnet"
)

// Arc is one direction of a substrate link.
type Arc int32

// Opposite is the other direction of the same link.
func (a Arc) Opposite() Arc { return a ^ 1 }

// Link is the index of the arc's link in the substrate.
func (a Arc) Link() int { return int(a >> 1) }

// Dir is the direction of the link the arc stands for.
func (a Arc) Dir() vnet.Direction { return vnet.Direction(a & 1) }

// ArcOf is a link of the substrate, by index, in a direction.
func ArcOf(link int, dir vnet.Direction) Arc { return Arc(2*link + int(dir)) }

// Graph is a substrate with its nodes numbered: hosts in the substrate's
// order from 0, then switches. It keeps working space: one search at a time.
type Graph struct {
	links   []vnet.SubstrateLink
	hosts   int // number of nodes at which a walk may go on by any link; they come first
	named   int // number of nodes that host; they come first
	names   []string
	index   map[string]int
	leaving [][]Arc        // by node, in order of link name
	access  [][]Arc        // by switch: the arcs to hosts
	onward  [][]Arc        // by host: leaving, without arcs to stubs
	every   []uint64       // all hosts, as bits
	outer   []uint64       // hosts with a stub, as bits; made when first needed
	stubs   [][]Arc        // by host: the arcs that leave it to stubs
	stub    []Arc          // by host: the only arc to it, if that comes from a host; or -1
	head    []int          // by arc: the node it reaches
	rank    []int          // by link: its place in the order of names
	byName  map[string]int // index of a link
	trees   []*tree        // by switch, made when first needed
	seen    []mark         // by state of a search
	epoch   int
	steps   int
	reach   Reach // the last search
	fares   *cheapest
	direct  []int32 // see Direct

	whole   vnet.Substrate // the substrate of which it is a part
	pinning *pins          // made when first needed
}

// New builds the graph; an error names a link with an end that is not there,
// or a name used twice.
func New(sub vnet.Substrate) (*Graph, error) {
	g := &Graph{links: sub.Links, whole: sub, hosts: len(sub.Hosts), index: map[string]int{}}
	for _, h := range sub.Hosts {
		g.names = append(g.names, string(h.Name))
	}
	g.names = append(g.names, sub.Switches...)
	for i, name := range g.names {
		if _, twice := g.index[name]; twice {
			return nil, fmt.Errorf("read substrate: two nodes are called %s", name)
		}
		g.index[name] = i
	}
	g.leaving = make([][]Arc, len(g.names))
	g.named = len(sub.Hosts)
	if len(sub.Relays) > 0 || sub.Steered() { // switches send on as they are told, as hosts do
		g.hosts = len(g.names)
	}
	g.trees = make([]*tree, len(g.names)-g.hosts)
	g.access = make([][]Arc, len(g.names)-g.hosts)
	return g, g.join()
}

// join enters the links, by name.
func (g *Graph) join() error {
	order := make([]int, len(g.links))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(g.links[a].Name, g.links[b].Name) })
	g.head, g.rank = make([]int, 2*len(g.links)), make([]int, len(g.links))
	g.byName = make(map[string]int, len(g.links))
	for rank, i := range order {
		l := g.links[i]
		if rank > 0 && g.links[order[rank-1]].Name == l.Name {
			return fmt.Errorf("read substrate: two links are called %s", l.Name)
		}
		g.rank[i], g.byName[l.Name] = rank, i
		for _, dir := range vnet.Directions {
			from, ok := g.index[l.Ends[dir]]
			if !ok {
				return fmt.Errorf("read substrate: link %s ends at %q, which is neither host nor switch", l.Name, l.Ends[dir])
			}
			arc := ArcOf(i, dir)
			g.leaving[from] = append(g.leaving[from], arc)
			g.head[arc.Opposite()] = from
		}
	}
	g.prune()
	for i := range g.access {
		for _, a := range g.leaving[g.hosts+i] {
			if g.isHost(g.head[a]) {
				g.access[i] = append(g.access[i], a)
			}
		}
	}
	return nil
}

// prune finds the hosts that only one link joins to another: no walk leads
// through them.
func (g *Graph) prune() {
	g.stub, g.stubs, g.onward = make([]Arc, g.hosts), make([][]Arc, g.hosts), make([][]Arc, g.hosts)
	for h := range g.stub {
		g.stub[h] = -1
		if l := g.leaving[h]; len(l) == 1 && g.isHost(g.head[l[0]]) && len(g.leaving[g.head[l[0]]]) > 1 {
			g.stub[h] = l[0].Opposite()
		}
	}
	for h := range g.onward {
		for _, a := range g.leaving[h] {
			if to := g.head[a]; !g.isHost(to) || g.stub[to] < 0 {
				g.onward[h] = append(g.onward[h], a)
			} else {
				g.stubs[h] = append(g.stubs[h], a)
			}
		}
	}
}

// Host is the number of a host.
func (g *Graph) Host(name vnet.HostID) (int, bool) {
	i, ok := g.index[string(name)]
	return i, ok && i < g.named
}

// Name is the name of a node.
func (g *Graph) Name(node int) string { return g.names[node] }

// Head is the node an arc reaches.
func (g *Graph) Head(a Arc) int { return g.head[a] }

// Leaving lists the arcs that leave a node, in order of link name.
func (g *Graph) Leaving(node int) []Arc { return g.leaving[node] }

// Beyond is the node at the other end of a link; false: the link is unknown or
// does not touch the node.
func (g *Graph) Beyond(node int, link string) (int, bool) {
	i, ok := g.byName[link]
	if !ok {
		return 0, false
	}
	a := ArcOf(i, vnet.Forward)
	switch node {
	case g.head[a.Opposite()]:
		return g.head[a], true
	case g.head[a]:
		return g.head[a.Opposite()], true
	}
	return 0, false
}

// Flat says that there is no switch: every node hosts.
func (g *Graph) Flat() bool { return g.named == len(g.names) }

// Latency of an arc's link.
func (g *Graph) Latency(a Arc) time.Duration { return g.links[a.Link()].Latency }

// Steps counts the arcs that searches have looked at so far: a measure of
// effort that is the same on every machine.
func (g *Graph) Steps() int { return g.steps }

// Path names the links of a walk.
func (g *Graph) Path(walk []Arc) vnet.Path {
	path := make(vnet.Path, len(walk))
	for i, a := range walk {
		path[i] = g.links[a.Link()].Name
	}
	return path
}

// Walk is the arcs of a path between two hosts; an error names the first link
// that is unknown or does not continue the walk.
func (g *Graph) Walk(from, to int, path vnet.Path) ([]Arc, error) {
	walk, at := make([]Arc, len(path)), from
	for i, name := range path {
		link, ok := g.byName[name]
		if !ok {
			return nil, fmt.Errorf("walk from %s: no substrate link %q", g.names[from], name)
		}
		switch arc := ArcOf(link, vnet.Forward); at {
		case g.head[arc.Opposite()]:
			walk[i] = arc
		case g.head[arc]:
			walk[i] = arc.Opposite()
		default:
			return nil, fmt.Errorf("walk from %s: link %s does not touch %s", g.names[from], name, g.names[at])
		}
		at = g.head[walk[i]]
	}
	if at != to {
		return nil, fmt.Errorf("walk from %s: the path leads to %s, not to %s", g.names[from], g.names[at], g.names[to])
	}
	return walk, nil
}

// isHost says whether a node is a host.
func (g *Graph) isHost(node int) bool { return node < g.hosts }

// Only is the host that a host's one link leads to; -1: it is a switch, has
// several links, or is all that the other has too.
func (g *Graph) Only(node int) int {
	if node >= g.hosts || g.stub[node] < 0 {
		return -1
	}
	return g.head[g.stub[node]^1]
}
