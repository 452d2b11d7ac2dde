package embed

import (
	"slices"

	"sublet/embed/graph"
)

// preserve looks, among embeddings of equal cost, for the one that leaves most to
// later requests: it takes bandwidth at hosts that have little left, so that
// hosts with much keep it for nodes with much traffic. What is left is valued by
// the sum, over all hosts and switches, of the square of the bandwidth of their
// links (docs/embedding.md has what that gains).
func (s *search) preserve(limit int) {
	if len(s.walks) == 0 {
		return
	}
	w := s.freeBandwidth()
	s.workLimit = limit
	cost, least := s.cost, w.cost(s)
	for range preserveSteps {
		if s.spent() >= limit {
			break
		}
		s.firstRank = s.random.below(len(s.rank))
		if now, ok := s.tryPreserve(w, cost, least); ok {
			least = now
		}
	}
	s.firstRank = 0
}

// Bounds of preserve.
const (
	preserveSteps = 100 // steps
	preserveMoves = 6   // nodes moved in one
)

// tryPreserve moves a few nodes to where the cost is equal and less is lost; if
// it finds no such place, nothing changes.
func (s *search) tryPreserve(w *freeBandwidth, cost, least float64) (float64, bool) {
	set := s.neighbourhood(1 + s.random.below(preserveMoves))
	s.takeOut(set)
	s.relocations, s.costBound = hostsTried*len(set), cost
	found := s.insert(set, cost)
	s.costBound = unlimited
	if found {
		if now := w.cost(s); now < least {
			return now, true
		}
		s.removeAll(set)
	}
	s.putBack()
	return least, false
}

// freeBandwidth is the bandwidth left on the links of hosts and switches.
type freeBandwidth struct {
	before  []float64 // by node of the substrate, before anything was placed
	taken   []float64 // by node: what the network takes of that; all 0 outside of cost
	touched []int
}

// freeBandwidth sums up what was left on the links of each node.
func (s *search) freeBandwidth() *freeBandwidth {
	nodes := len(s.residual.sub.Hosts) + len(s.residual.sub.Switches)
	w := &freeBandwidth{before: make([]float64, nodes), taken: make([]float64, nodes)}
	for i := range s.initial.Price {
		left := slices.Min(s.initial.Left[i*s.residual.spans : (i+1)*s.residual.spans])
		w.before[s.graph.Head(graph.Arc(i))] += float64(left)
	}
	s.otherWork += len(s.initial.Price) / 4
	return w
}

// cost is by how much the network lowers the sum of squares.
func (w *freeBandwidth) cost(s *search) float64 {
	for l, walk := range s.walks {
		for _, a := range walk {
			w.take(s.graph.Head(a), s.problem.links[l].weight)
			w.take(s.graph.Head(a.Opposite()), s.problem.links[l].weight)
		}
		s.otherWork += len(walk) / 4
	}
	sum := 0.0
	for _, h := range w.touched {
		sum += w.taken[h] * (2*w.before[h] - w.taken[h])
		w.taken[h] = 0
	}
	w.touched = w.touched[:0]
	return sum
}

// take notes that a link takes some of the bandwidth around a host.
func (w *freeBandwidth) take(h int, amount float64) {
	if w.taken[h] == 0 {
		w.touched = append(w.touched, h)
	}
	w.taken[h] += amount
}
