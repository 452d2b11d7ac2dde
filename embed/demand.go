package embed

import (
	"fmt"

	"sublet/embed/graph"
	"sublet/embed/rate"
	"sublet/vnet"
)

// Tenancy is one running lease as rate allocation sees it: the topology of
// its running stage and its mapping.
type Tenancy struct {
	Topology vnet.Topology
	Mapping  vnet.Mapping
}

// demandsOf lists what each link of a topology asks of the directed substrate
// elements it runs over: two demands for each of its paths, Forward then
// Reverse, in the topology's order.
func demandsOf(g *graph.Graph, sub vnet.Substrate, t Tenancy) ([]rate.Demand, error) {
	demands := make([]rate.Demand, 0, 2*len(t.Topology.Links))
	ways := waysOf(t.Topology)
	for _, l := range t.Topology.Links {
		at, carriers, err := route(g, t.Mapping, l.Name, l.Ends)
		if err != nil {
			return nil, fmt.Errorf("list demands: %w", err)
		}
		for _, carrier := range carriers {
			for _, dir := range vnet.Directions {
				over := append(elements(sub, at, carrier.walk, dir), elementsOutside(ways, l, dir)...)
				demands = append(demands, rate.Demand{Bandwidth: carrier.share.Bandwidth(l.Bandwidth[dir]), Elements: over})
			}
		}
	}
	return demands, nil
}

// carrier is one of the ways on which a virtual link goes through the substrate.
type carrier struct {
	share vnet.PathShare
	walk  []graph.Arc // none if the link begins and ends in one host
}

// route is a virtual link's ways through the substrate, from the host it
// begins at.
func route(g *graph.Graph, mapping vnet.Mapping, link string, ends [2]string) (int, []carrier, error) {
	from, known := g.Host(mapping.Nodes[ends[0]])
	to, too := g.Host(mapping.Nodes[ends[1]])
	shares := mapping.Paths(link)
	if !known || !too || shares == nil {
		return 0, nil, fmt.Errorf("link %s from %s to %s is not mapped", link, ends[0], ends[1])
	}
	carriers := make([]carrier, len(shares))
	for i, share := range shares {
		walk, err := g.Walk(from, to, share.Path)
		if err != nil {
			return 0, nil, fmt.Errorf("link %s: %w", link, err)
		}
		carriers[i] = carrier{share, walk}
	}
	return from, carriers, nil
}

// elements lists what frames in one direction of a virtual link run over.
func elements(sub vnet.Substrate, host int, walk []graph.Arc, dir vnet.Direction) []rate.Element {
	if len(walk) == 0 {
		return []rate.Element{rate.Inside(sub.Hosts[host].Name, dir)}
	}
	list := make([]rate.Element, len(walk))
	for i, a := range walk {
		list[i] = rate.Element{Link: sub.Links[a.Link()].Name, Dir: a.Dir() ^ dir}
	}
	return list
}
