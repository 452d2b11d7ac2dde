package embed

import (
	"cmp"
	"slices"

	"sublet/embed/graph"
)

// search is a partial embedding that grows and shrinks.
type search struct {
	problem    *problem
	graph      *graph.Graph
	left       *resources
	candidates [][]int       // by node: hosts that could take it alone
	rank       []int         // by host: its place in the order of free capacity
	host       []int         // by node: where it is; -1: nowhere yet
	nodesAt    []int         // by host: nodes of this network
	walks      [][]graph.Arc // by link: from Ends[0] to Ends[1]
	budget     int           // placements still to be tried
	patience   int           // steps of the graph at which to give up
	deepest    outcome       // the furthest failure of this attempt
	worst      outcome       // and of all
}

// outcome is where everything was at some time.
type outcome struct {
	host  []int
	walks [][]graph.Arc
	cost  float64 // the sum over all links of weight times hops
	depth int     // of a failure: the nodes placed; -1: none
	node  int     // of a failure: the node that found no host
}

// settle puts a node on a host and routes its links to nodes already placed;
// false, and nothing is changed, if one finds no way.
func (s *search) settle(v, host int) bool {
	n := s.problem.nodes[v]
	s.occupy(v, host)
	for i, l := range n.links {
		if s.host[s.problem.links[l].far(v)] < 0 || s.route(l) {
			continue
		}
		for _, done := range n.links[:i] {
			s.unroute(done)
		}
		s.vacate(v)
		return false
	}
	return true
}

// unsettle undoes settle.
func (s *search) unsettle(v int) {
	for _, l := range s.problem.nodes[v].links {
		s.unroute(l)
	}
	s.vacate(v)
}

// occupy takes a node's amounts of a host.
func (s *search) occupy(v, host int) {
	s.host[v] = host
	s.nodesAt[host]++
	s.left.take(s.left.of(host, cpu), s.problem.nodes[v].cpu, 1)
	s.left.take(s.left.of(host, memory), s.problem.nodes[v].memory, 1)
}

// vacate undoes occupy.
func (s *search) vacate(v int) {
	s.left.take(s.left.of(s.host[v], cpu), s.problem.nodes[v].cpu, -1)
	s.left.take(s.left.of(s.host[v], memory), s.problem.nodes[v].memory, -1)
	s.nodesAt[s.host[v]]--
	s.host[v] = -1
}

// suits says whether a host is what a node asks for by name and site.
func (s *search) suits(v, host int) bool {
	h := s.left.sub.Hosts[host]
	for _, want := range s.problem.nodes[v].wants {
		if want.Host != "" && want.Host != h.Name || want.Site != "" && want.Site != h.Site {
			return false
		}
	}
	return true
}

// welcome says whether a host suits a node and other networks let it in.
func (s *search) welcome(v, host int) bool {
	return s.suits(v, host) && s.left.fits(s.left.of(host, guests), s.problem.nodes[v].guests)
}

// roomy says whether a host has the processor and memory a node asks for, and
// no other node of a network that forbids them to share one.
func (s *search) roomy(v, host int) bool {
	n := &s.problem.nodes[v]
	if s.problem.apart && s.nodesAt[host] > 0 {
		return false
	}
	return s.left.fits(s.left.of(host, cpu), n.cpu) && s.left.fits(s.left.of(host, memory), n.memory)
}

// choice is a host for a node and what the links to placed nodes would cost.
type choice struct {
	host int
	cost float64
}

// choices lists the hosts that could take a node now, cheapest first; among
// equals, the one with the most free capacity.
func (s *search) choices(v int) []choice {
	var list []choice
	for _, h := range s.candidates[v] {
		if s.roomy(v, h) {
			list = append(list, choice{host: h})
		}
	}
	for _, l := range s.problem.nodes[v].links {
		if u := s.problem.links[l].far(v); s.host[u] >= 0 && len(list) > 0 {
			list = s.price(list, l, u)
		}
	}
	slices.SortFunc(list, func(a, b choice) int {
		if a.cost != b.cost {
			return cmp.Compare(a.cost, b.cost)
		}
		return cmp.Compare(s.rank[a.host], s.rank[b.host])
	})
	return list
}

// price adds the cost of a link from a placed node to each choice, and drops
// those it cannot reach.
func (s *search) price(list []choice, l, placed int) []choice {
	v, from := &s.problem.links[l], s.host[placed]
	query := s.query(l, placed)
	if len(list) == 1 {
		query.To = list[0].host
	}
	reach := s.graph.Reach(from, query)
	kept := list[:0]
	for _, c := range list {
		hops, ok := reach.Hops(c.host)
		if c.host == from {
			hops, ok = 0, s.carries(l, from)
		}
		if ok {
			kept = append(kept, choice{c.host, c.cost + v.weight*float64(hops)})
		}
	}
	return kept
}
