package graph

import (
	"cmp"
	"slices"
	"time"
)

// Walks lists walks from one host to another that a query admits, shortest
// first: all of them if there are at most limit and looking for them takes at
// most 64 steps for each. No walk visits a host twice, for a shorter one
// without the loop would do.
func (g *Graph) Walks(from, to, limit int, q Query) [][]Arc {
	q.To = to
	w := &walker{graph: g, query: q, limit: limit, steps: 64 * limit, visited: make([]bool, g.hosts), used: make([]bool, len(g.links))}
	w.visited[from] = true
	w.from(from)
	slices.SortStableFunc(w.found, func(a, b []Arc) int { return cmp.Compare(len(a), len(b)) })
	return w.found
}

// walker is a depth-first search through all walks.
type walker struct {
	graph        *Graph
	query        Query
	limit, steps int
	visited      []bool // hosts on the walk
	used         []bool // links on the walk
	walk         []Arc
	latency      time.Duration
	found        [][]Arc
}

// from goes on from a state.
func (w *walker) from(state int) {
	g := w.graph
	if g.isHost(state) {
		for _, a := range g.leaving[state] {
			if to := g.head[a]; g.isHost(to) {
				w.take(a, to)
			} else {
				w.take(a, g.inside(to, to))
			}
		}
		return
	}
	entry, at := g.fabricState(state)
	for _, a := range g.leaving[at] {
		if g.isHost(g.head[a]) {
			w.take(a, g.head[a])
		}
	}
	for _, a := range g.treeOf(entry).children[at-g.hosts] {
		w.take(a, g.inside(entry, g.head[a]))
	}
}

// take goes over an arc, if it may, and comes back.
func (w *walker) take(a Arc, state int) {
	host := w.graph.isHost(state)
	latency := w.graph.Latency(a)
	w.graph.steps++
	if w.steps--; w.steps < 0 || len(w.found) == w.limit || w.used[a.Link()] || host && w.visited[state] {
		return
	}
	if w.query.Bound > 0 && w.latency+latency > w.query.Bound || !w.query.Allow(a) {
		return
	}
	w.walk, w.latency, w.used[a.Link()] = append(w.walk, a), w.latency+latency, true
	switch {
	case state == w.query.To:
		w.found = append(w.found, slices.Clone(w.walk))
	case host:
		w.visited[state] = true
		w.from(state)
		w.visited[state] = false
	default:
		w.from(state)
	}
	w.walk, w.latency, w.used[a.Link()] = w.walk[:len(w.walk)-1], w.latency-latency, false
}
