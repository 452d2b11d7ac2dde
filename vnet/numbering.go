package vnet

import (
	"fmt"
	"slices"
)

// Numbering is what links of a network have for as long as they exist, whatever
// comes and goes beside them.
type Numbering struct {
	Links      map[string]int       `json:"links"`           // index, by link
	Interfaces map[string][2]string `json:"interfaces"`      // names at both ends, by link
	Metrics    map[string]int       `json:"metrics"`         // among parallel links, from 1 on
	Exits      map[string]string    `json:"exits,omitempty"` // port that leads to a switch's exit, by switch
	// Chains are generations of chains, where they are not the first: the hops of
	// two that follow one another are told apart by them.
	Chains map[string]int `json:"chains,omitempty"`
}

// ChainGenerations is after how many the first one comes again.
const ChainGenerations = 14

// Numbering is that of a network by the order of its links.
func (t Topology) Numbering() Numbering { return t.Renumbered(Numbering{}, Topology{}) }

// Renumbered is the numbering of a network that had another form: links that were
// there keep theirs, new ones take what none had then or has now.
func (t Topology) Renumbered(was Numbering, former Topology) Numbering {
	n := Numbering{
		Links: make(map[string]int), Interfaces: make(map[string][2]string),
		Metrics: make(map[string]int), Exits: make(map[string]string),
	}
	used, metrics, names := was.used(), make(map[[2]string]map[int]bool), was.named(former)
	for _, node := range t.Nodes {
		names.take(node.Name, node.Device)
	}
	for _, l := range t.Links {
		if index, ok := was.Links[l.Name]; ok {
			n.Links[l.Name], n.Interfaces[l.Name], n.Metrics[l.Name] = index, was.Interfaces[l.Name], was.Metrics[l.Name]
			mark(metrics, pairOf(l), was.Metrics[l.Name])
		}
	}
	for _, l := range t.Links {
		if _, kept := was.Links[l.Name]; kept {
			continue
		}
		n.Links[l.Name] = lowest(used, 0)
		used[n.Links[l.Name]] = true
		n.Metrics[l.Name] = lowest(metrics[pairOf(l)], 1)
		mark(metrics, pairOf(l), n.Metrics[l.Name])
		n.Interfaces[l.Name] = t.interfacesOf(names, l)
	}
	n.Chains = t.generations(was.Chains, former)
	for _, s := range t.Switches {
		n.Exits[s.Name] = was.Exits[s.Name]
		if n.Exits[s.Name] == "" {
			n.Exits[s.Name] = names.next(s.Name)
		}
	}
	return n
}

// generations are those of chains whose hops were others in a former form.
func (t Topology) generations(was map[string]int, former Topology) map[string]int {
	var all map[string]int
	for _, l := range t.Links {
		if _, seen := all[l.Chain]; l.Chain == "" || seen {
			continue
		}
		of := was[l.Chain]
		if before := former.hopsOf(l.Chain); len(before) > 0 && !slices.Equal(before, t.hopsOf(l.Chain)) {
			of = (of + 1) % ChainGenerations
		}
		if of == 0 {
			continue
		}
		if all == nil {
			all = make(map[string]int)
		}
		all[l.Chain] = of
	}
	return all
}

// chainSegment is what of a chain's link gives it hops.
type chainSegment struct {
	name    string
	limited bool // what holds its rate is a hop
}

func (t Topology) hopsOf(chain string) (list []chainSegment) {
	for _, l := range t.ChainLinks(chain) {
		list = append(list, chainSegment{l.Name, l.Bandwidth[Forward].Min > 0})
	}
	return list
}

// used are the indexes of links.
func (n Numbering) used() map[int]bool {
	used := make(map[int]bool, len(n.Links))
	for _, index := range n.Links {
		used[index] = true
	}
	return used
}

// interfaceNames gives names to interfaces: the number of the link at its node,
// stated names counted, unless the name was given before.
type interfaceNames struct {
	count map[string]int
	taken map[string]map[string]bool
}

// named are the names that the numbering gives to the nodes of its topology.
func (n Numbering) named(t Topology) *interfaceNames {
	names := &interfaceNames{make(map[string]int), make(map[string]map[string]bool)}
	for _, l := range t.Links {
		for end, node := range l.Ends {
			names.take(node, n.Interfaces[l.Name][end])
		}
	}
	for _, s := range t.Switches {
		names.take(s.Name, n.Exits[s.Name])
	}
	return names
}

func (n *interfaceNames) take(node, name string) {
	if n.taken[node] == nil {
		n.taken[node] = make(map[string]bool)
	}
	n.taken[node][name] = true
}

func (n *interfaceNames) of(l VirtualLink) [2]string {
	both := l.Interfaces
	for end, node := range l.Ends {
		if both[end] == "" {
			both[end] = n.next(node)
		} else {
			n.count[node]++
		}
	}
	return both
}

// interfacesOf are the interfaces of a link. Segments of chains have some in
// functions only, and own links of functions in the nodes that they lead to: at their
// other ends nothing of a node leads there.
func (t Topology) interfacesOf(names *interfaceNames, l VirtualLink) (both [2]string) {
	if l.Chain == "" {
		return names.of(l)
	}
	for end, name := range l.Ends {
		if n, ok := t.Node(name); ok && n.IsFunction() && l.Sender() == "" || t.ReachesNode(l, end) {
			both[end] = names.next(name)
		}
	}
	return both
}

func (n *interfaceNames) next(node string) string {
	for {
		name := fmt.Sprintf("eth%d", n.count[node])
		n.count[node]++
		if !n.taken[node][name] {
			return name
		}
	}
}

// pairOf are a link's ends in one order.
func pairOf(l VirtualLink) [2]string {
	return [2]string{min(l.Ends[0], l.Ends[1]), max(l.Ends[0], l.Ends[1])}
}

func mark(used map[[2]string]map[int]bool, pair [2]string, number int) {
	if used[pair] == nil {
		used[pair] = make(map[int]bool)
	}
	used[pair][number] = true
}

func lowest(used map[int]bool, from int) int {
	for used[from] {
		from++
	}
	return from
}
