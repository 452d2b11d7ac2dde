package embed

import (
	"sublet/embed/graph"
	"sublet/vnet"
)

// search is a partial embedding that grows and shrinks.
type search struct {
	problem    *problem
	graph      *graph.Graph
	left       *resources
	candidates [][]int // by node: hosts that could take it alone
	shortlists [][]int // by node: those of its candidates that are tried
	twins      twins
	thorough   bool          // all twins are tried
	keen       bool          // choices cost what they cost beside the rest of the network
	rank       []int         // by host: its place in the order of free capacity
	turn       int           // the rank that comes first
	host       []int         // by node: where it is; -1: nowhere yet
	nodesAt    []int         // by host: nodes of this network
	walks      [][]graph.Arc // by link: from Ends[0] to Ends[1]
	paid       []float64     // by link: what its walk cost when it was taken
	charges    []float64     // by host: what it costs to use it
	cost       float64       // the sum of what is paid and charged
	open       float64       // the weight of links without a walk
	prices     graph.Prices  // of the next search
	before     graph.Prices  // the same, of what was left before anything was placed
	even       bool          // all prices are a hop's, and every node hosts
	least      *graph.Least  // working space of single walks, and of rows
	arena      []graph.Arc   // of walks
	charts     *charts
	weighed    int        // hosts, as work
	lists      [][]choice // working space of choices, by depth
	depth      int        // of the lists in use
	out        []int      // what repair puts back
	branching  branch     // working space of recruit
	undo       []moved    // what the step of improve under way took out
	trials     int        // that it may still make
	effort     *Effort    // of the answer
	told       int        // of the work done, what effort has been told of
	noisy      bool       // choices look dearer than they are
	random     random
	budget     int     // placements still to be tried
	bound      float64 // on the cost of what is tried
	patience   int     // work at which to give up
	deepest    outcome // the furthest failure of this attempt
	worst      outcome // and of all
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
	s.weighed += 20
	s.occupy(v, host)
	for i, l := range n.links {
		if s.host[s.problem.links[l].far(v)] < 0 || s.route(l) && s.lowest() <= s.bound {
			continue
		}
		for _, done := range n.links[:i+1] {
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
	s.cost += s.charge(host)
	s.nodesAt[host]++
	s.left.take(s.left.of(host, cpu), s.problem.nodes[v].needs, 1)
}

// vacate undoes occupy.
func (s *search) vacate(v int) {
	s.left.take(s.left.of(s.host[v], cpu), s.problem.nodes[v].needs, -1)
	s.nodesAt[s.host[v]]--
	s.cost -= s.charge(s.host[v])
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

// wide says whether the links of a host have what the links of a node without
// a walk need, if none of it can stay inside the host.
func (s *search) wide(v, host int) bool {
	if !s.problem.apart {
		return true
	}
	for span := range s.problem.spans {
		for _, dir := range vnet.Directions {
			need := int64(0)
			for _, l := range s.problem.nodes[v].links {
				if s.walks[l] == nil {
					need += s.problem.links[l].min[s.problem.links[l].outward(v)^dir][span]
				}
			}
			if need > s.around(host, dir, span, need) {
				return false
			}
		}
	}
	return true
}

// around is what the links of a host have left in a direction, or some of it
// that is at least enough.
func (s *search) around(host int, dir vnet.Direction, span int, enough int64) int64 {
	sum := int64(0)
	for _, a := range s.graph.Leaving(host) {
		if sum >= enough {
			break
		}
		sum += max(0, s.left.left[int(s.left.arc(a^graph.Arc(dir)))*s.left.spans+span])
	}
	return sum
}

// strangled says whether a placed node has links without a walk that the links
// of its host cannot carry any more.
func (s *search) strangled() bool {
	for v, host := range s.host {
		if host >= 0 && !s.wide(v, host) {
			return true
		}
	}
	return false
}

// roomy says whether a host that is a candidate has room for a node now. One
// that has nothing of this network has what it had when candidates were chosen.
func (s *search) roomy(v, host int) bool {
	if s.nodesAt[host] == 0 {
		return true
	}
	return !s.problem.apart && s.has(v, host)
}

// has says whether a host has the processor and memory a node asks for, and
// carries its links.
func (s *search) has(v, host int) bool {
	return s.left.fits(s.left.of(host, cpu), s.problem.nodes[v].needs)
}
