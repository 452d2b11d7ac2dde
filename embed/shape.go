package embed

import (
	"slices"

	"sublet/embed/graph"
)

// shape looks, among embeddings that cost the same, for the one that leaves
// later requests most: it takes bandwidth where hosts have little left around
// them, so that hosts with much stay so, which nodes with much traffic need.
// What is left is valued by the sum, over all hosts and switches, of the square
// of the bandwidth around them (docs/embedding.md has what that gains).
func (s *search) shape(limit int) {
	if len(s.walks) == 0 {
		return
	}
	w := s.wealthBefore()
	s.patience = limit
	cost, least := s.cost, w.lost(s)
	for range mostShapes {
		if s.spent() >= limit {
			break
		}
		s.turn = s.random.below(len(s.rank))
		if now, ok := s.reshape(w, cost, least); ok {
			least = now
		}
	}
	s.turn = 0
}

// Bounds of shape.
const (
	mostShapes = 100 // steps
	mostShaped = 6   // nodes moved in one
)

// reshape moves a few nodes to where everything costs as much and less is lost,
// or leaves them.
func (s *search) reshape(w *wealth, cost, least float64) (float64, bool) {
	set := s.neighbourhood(1 + s.random.below(mostShaped))
	s.lift(set)
	s.trials, s.bound = width*len(set), cost
	found := s.insert(set, cost)
	s.bound = unlimited
	if found {
		if now := w.lost(s); now < least {
			return now, true
		}
		s.withdraw(set)
	}
	s.putBack()
	return least, false
}

// wealth is the bandwidth around hosts.
type wealth struct {
	around  []float64 // by host, before anything was placed
	taken   []float64 // by host: what the network takes of that; 0 but while it is summed
	touched []int
}

// wealthBefore sums up what was left around each host.
func (s *search) wealthBefore() *wealth {
	nodes := len(s.left.sub.Hosts) + len(s.left.sub.Switches)
	w := &wealth{around: make([]float64, nodes), taken: make([]float64, nodes)}
	for i := range s.before.Price {
		left := slices.Min(s.before.Left[i*s.left.spans : (i+1)*s.left.spans])
		w.around[s.graph.Head(graph.Arc(i))] += float64(left)
	}
	s.weighed += len(s.before.Price) / 4
	return w
}

// lost is by how much the network lowers the sum of squares.
func (w *wealth) lost(s *search) float64 {
	for l, walk := range s.walks {
		for _, a := range walk {
			w.take(s.graph.Head(a), s.problem.links[l].weight)
			w.take(s.graph.Head(a.Opposite()), s.problem.links[l].weight)
		}
		s.weighed += len(walk) / 4
	}
	sum := 0.0
	for _, h := range w.touched {
		sum += w.taken[h] * (2*w.around[h] - w.taken[h])
		w.taken[h] = 0
	}
	w.touched = w.touched[:0]
	return sum
}

// take notes that a link takes some of the bandwidth around a host.
func (w *wealth) take(h int, amount float64) {
	if w.taken[h] == 0 {
		w.touched = append(w.touched, h)
	}
	w.taken[h] += amount
}
