package embed

import (
	"container/heap"
)

// orderOf is the order in which nodes are placed: after each node those most
// strongly joined to the nodes before it. Nodes without a choice of host come
// first, since their places are known anyhow; then, where nothing is joined
// to what is placed, the nodes that failed most in earlier attempts, have the
// fewest hosts, and the most traffic.
func (s *search) orderOf(failed []int) []int {
	q := &queue{joined: make([]float64, len(s.host)), at: make([]int, len(s.host))}
	for v := range s.host {
		q.at[v] = v
		q.nodes = append(q.nodes, v)
		q.keys = append(q.keys, s.priority(v, failed[v]))
	}
	heap.Init(q)
	order := make([]int, 0, len(s.host))
	for q.Len() > 0 {
		v := heap.Pop(q).(int)
		order = append(order, v)
		for _, l := range s.problem.nodes[v].links {
			u := s.problem.links[l].far(v)
			if q.at[u] >= 0 {
				q.joined[u] += s.problem.links[l].weight
				heap.Fix(q, q.at[u])
			}
		}
	}
	return order
}

// priority is what a node brings to the queue by itself.
type priority struct {
	fixed   bool // no choice of host
	failed  int
	hosts   int
	traffic float64
}

func (s *search) priority(v, failed int) priority {
	traffic := 0.0
	for _, l := range s.problem.nodes[v].links {
		traffic += s.problem.links[l].weight
	}
	hosts := len(s.candidates[v])
	return priority{hosts == 1, failed, hosts, traffic}
}

// queue is a heap of nodes not ordered yet.
type queue struct {
	nodes  []int
	at     []int      // by node: its place in nodes; -1: taken
	keys   []priority // by node
	joined []float64  // by node: the weight of its links to nodes taken
}

func (q *queue) Len() int { return len(q.nodes) }

func (q *queue) Less(i, j int) bool {
	a, b := q.nodes[i], q.nodes[j]
	ka, kb := q.keys[a], q.keys[b]
	switch {
	case ka.fixed != kb.fixed:
		return ka.fixed
	case ka.failed != kb.failed:
		return ka.failed > kb.failed
	case q.joined[a] != q.joined[b]:
		return q.joined[a] > q.joined[b]
	case ka.hosts != kb.hosts:
		return ka.hosts < kb.hosts
	case ka.traffic != kb.traffic:
		return ka.traffic > kb.traffic
	}
	return a < b
}

func (q *queue) Swap(i, j int) {
	q.nodes[i], q.nodes[j] = q.nodes[j], q.nodes[i]
	q.at[q.nodes[i]], q.at[q.nodes[j]] = i, j
}

// Push is never called: all nodes are there from the beginning.
func (q *queue) Push(v any) { q.nodes = append(q.nodes, v.(int)) }

// Pop takes the last node.
func (q *queue) Pop() any {
	last := len(q.nodes) - 1
	v := q.nodes[last]
	q.nodes, q.at[v] = q.nodes[:last], -1
	return v
}
