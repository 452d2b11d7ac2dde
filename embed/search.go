package embed

import (
	"sublet/embed/graph"
	"sublet/vnet"
)

// search is one run of the solver.
type search struct {
	instance
	policy
	state
	workspace
}

// instance is what is to be embedded into what, as it was before anything was
// placed. It does not change during a search.
type instance struct {
	problem    *problem
	graph      *graph.Graph
	candidates [][]int      // by node: hosts that could take it alone
	shortlists [][]int      // by node: the candidates that are tried
	equivalent equivalence  // of hosts
	rank       []int        // by host: its place in the order of free capacity
	hostCosts  []float64    // by host: what it costs to use it
	initial    graph.Prices // of every arc, with what it had left
	uniform    bool         // all arcs cost one hop, and every substrate node is a host
}

// policy is how the search goes about its present step, and when it gives up.
type policy struct {
	tryAllEquivalent bool    // try all hosts of a group of equivalent ones
	residualCosts    bool    // choose by costs beside what is placed of the network
	perturbed        bool    // choices look dearer than they are
	firstRank        int     // the rank that comes first among equal choices
	costBound        float64 // on the total cost
	placements       int     // that an attempt may still try
	relocations      int     // that a step of the local search may still try
	workLimit        int     // the work done at which the step ends
	random           random
	effort           *Effort // of the answer; several searches may share it
}

// state is a partial embedding that grows and shrinks.
type state struct {
	host       []int         // by node: its host; -1: not placed
	nodesAt    []int         // by host: the number of this network's nodes
	walks      [][]graph.Arc // by link: from Ends[0] to Ends[1]; nil: not routed
	linkCosts  []float64     // by link: what its walk cost when it was routed
	cost       float64       // the sum of link and host costs
	openWeight float64       // the summed weight of the links that are not routed
	residual   *residuals    // what is left of the substrate
	prices     graph.Prices  // of every arc, with what it has left
	deepest    outcome       // the failure of this attempt with most nodes placed
	furthest   outcome       // the same of all attempts
}

// workspace is memory that is used again, and the count of work.
type workspace struct {
	shortest    *graph.Least // walks of least cost
	arena       []graph.Arc  // in which walks are stored
	tables      *costTables
	choiceLists [][]choice // by depth of a depth-first search
	listsInUse  int
	branch      branchAndBound
	removed     []int     // nodes that repair puts back
	lifted      []removal // what putBack puts back
	otherWork   int       // work that is not the graph's
	reported    int       // work that effort was told of
}

// outcome is a copy of a state.
type outcome struct {
	host  []int
	walks [][]graph.Arc
	cost  float64
	depth int // after a failure: the number of nodes placed; -1: no failure
	node  int // after a failure: the node that found no host
}

// placeNode puts a node on a host and routes its links to placed nodes. False,
// and nothing is changed: one of them finds no path.
func (s *search) placeNode(v, host int) bool {
	n := s.problem.nodes[v]
	s.otherWork += 20
	s.occupy(v, host)
	for i, l := range n.links {
		if s.host[s.problem.links[l].far(v)] < 0 || s.route(l) && s.lowest() <= s.costBound {
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

// removeNode undoes placeNode.
func (s *search) removeNode(v int) {
	for _, l := range s.problem.nodes[v].links {
		s.unroute(l)
	}
	s.vacate(v)
}

// occupy takes what a node needs of a host.
func (s *search) occupy(v, host int) {
	s.host[v] = host
	s.cost += s.hostCost(host)
	s.nodesAt[host]++
	s.residual.take(s.residual.of(host, cpu), s.problem.nodes[v].needs, 1)
}

// vacate undoes occupy.
func (s *search) vacate(v int) {
	s.residual.take(s.residual.of(s.host[v], cpu), s.problem.nodes[v].needs, -1)
	s.nodesAt[s.host[v]]--
	s.cost -= s.hostCost(s.host[v])
	s.host[v] = -1
}

// matches says whether a host has the name and site that a node asks for.
func (s *search) matches(v, host int) bool {
	h := s.residual.sub.Hosts[host]
	for _, want := range s.problem.nodes[v].wants {
		if want.Host != "" && want.Host != h.Name || want.Site != "" && want.Site != h.Site {
			return false
		}
	}
	return true
}

// eligible says whether a host matches a node and no other network keeps it out.
func (s *search) eligible(v, host int) bool {
	return s.matches(v, host) && s.residual.fits(s.residual.of(host, guests), s.problem.nodes[v].guests)
}

// hasBandwidth says whether the links of a host have the bandwidth that a node's
// unrouted links need, where none of them can stay inside the host.
func (s *search) hasBandwidth(v, host int) bool {
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
			if need > s.bandwidthAt(host, dir, span, need) {
				return false
			}
		}
	}
	return true
}

// bandwidthAt is the bandwidth left on the links of a host in a direction. It stops
// adding at enough.
func (s *search) bandwidthAt(host int, dir vnet.Direction, span int, enough int64) int64 {
	sum := int64(0)
	for _, a := range s.graph.Leaving(host) {
		if sum >= enough {
			break
		}
		sum += max(0, s.residual.amounts[int(s.residual.arc(a^graph.Arc(dir)))*s.residual.spans+span])
	}
	return sum
}

// cutOff says whether a placed node has unrouted links that the links of its
// host cannot carry any more.
func (s *search) cutOff() bool {
	for v, host := range s.host {
		if host >= 0 && !s.hasBandwidth(v, host) {
			return true
		}
	}
	return false
}

// fits says whether a candidate host can take a node now. A host without nodes of
// this network has what it had when the candidates were chosen.
func (s *search) fits(v, host int) bool {
	if s.nodesAt[host] == 0 {
		return true
	}
	return !s.problem.apart && s.hasCapacity(v, host)
}

// hasCapacity says whether a host has the processor time, memory and forwarding
// that a node needs.
func (s *search) hasCapacity(v, host int) bool {
	return s.residual.fits(s.residual.of(host, cpu), s.problem.nodes[v].needs)
}
