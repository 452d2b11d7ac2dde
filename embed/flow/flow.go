// Package flow carries the virtual links of a network over several paths each:
// for fixed places of the nodes and what the substrate has left, a minimum
// cost multi-commodity flow, rounded to shares that a hash table can hold.
//
//	minimise   sum over links l and paths p of cost(l) * hops(p) * x[l,p]
//	subject to sum over p of x[l,p] = 1                        for all links l
//	           sum over l, p through a of need(l,a) * x[l,p] <= left(a)
//	                                       for all arcs a, directions and spans
//	           x >= 0
//
// The linear program is solved by column generation (Ford and Fulkerson 1958;
// Barnhart, Hane and Vance 2000): a restricted program over the paths known so
// far by the revised simplex method (simplex.go), and a search for the path of
// least reduced cost of each link (graph.Cheapest). Rows are added when a path
// first takes an arc, so the program is as large as what the network touches.
//
// Shares are then rounded to 1/vnet.ShareUnits without ever exceeding what is
// left (round.go). Everything is deterministic and the work is bounded.
//
// Compared with HiGHS, GLPK or CBC by
//
//	go run ./tools/flowcheck -n 1000 | python3 tools/flowcheck/check.py
package flow

import (
	"math"
	"slices"
	"time"

	"sublet/embed/graph"
	"sublet/vnet"
)

// Link is a virtual link whose ends have a place, on different hosts.
type Link struct {
	From, To int        // hosts
	Need     [2][]int64 // by span: outward from From, and back
	Cost     float64    // of carrying all of it over one hop, more than 0
	Bound    time.Duration
	Spread   time.Duration // how much slower than its fastest path another may be
	Paths    int           // at most, of the result; 1: it is not split
}

// Substrate is what a network runs over.
type Substrate struct {
	Graph *graph.Graph
	Left  func(graph.Arc) []int64 // by span; it is not changed

	// Work, if set, is told of pieces of work, in what a search takes to look
	// at an arc; false: no more may be done, and the links count as not fitting.
	Work func(units int) bool
}

// may says whether a step of the simplex method may be made: it takes the
// square of the rows.
func (p *program) may() bool {
	const multiplications = 64 // in the time of an arc
	return p.Work == nil || p.Work(1+len(p.basis)*len(p.basis)/multiplications)
}

// Share is one of a link's paths and its part of the link, in vnet.ShareUnits.
type Share struct {
	Walk  []graph.Arc
	Units int
}

// Limits of one solution: pivots of the simplex method.
const maxPivots = 2000

// Split gives each link its paths. False: the links do not fit, or no rounding
// of the optimum was found to fit.
func Split(sub Substrate, links []Link) ([][]Share, bool) {
	p := newProgram(sub, links)
	if p == nil || !p.solve(maxPivots) {
		return nil, false
	}
	return p.round()
}

// Cost is the value of the linear program, without rounding; false: it is
// infeasible, or took too many pivots.
func Cost(sub Substrate, links []Link) (float64, bool) {
	p := newProgram(sub, links)
	if p == nil || !p.solve(maxPivots) {
		return 0, false
	}
	return p.cost() * p.scale, true
}

// program is a linear program being solved.
type program struct {
	Substrate
	simplex
	links  []Link
	bound  []time.Duration // by link, on each path: Bound and Spread
	scale  float64         // of costs
	unit   float64         // of capacities
	total  [2]int64        // of needs: an arc with more left never binds
	rows   map[rowKey]int
	paths  []path         // by column, from len(links) on: artificial ones come first
	known  map[string]int // column of a link's walk
	same   bool           // both directions of every link need the same
	prices []float64      // duals, of the rows
}

// rowKey names the capacity of an arc in a span.
type rowKey struct {
	arc  graph.Arc
	span int
}

// path is a column: a walk of a link.
type path struct {
	link int
	walk []graph.Arc
}

// newProgram makes the program without any path; nil: a link has none at all.
func newProgram(sub Substrate, links []Link) *program {
	p := &program{Substrate: sub, links: links, rows: map[rowKey]int{}, known: map[string]int{}, same: true, unit: 1, scale: 1}
	p.bound = make([]time.Duration, len(links))
	for i, l := range links {
		var ok bool
		if p.bound[i], ok = p.slowest(l); !ok {
			return nil
		}
		p.scale = max(p.scale, l.Cost)
		most := [2]int64{}
		for dir, need := range l.Need {
			for _, n := range need {
				most[dir] = max(most[dir], n)
				p.unit = max(p.unit, float64(n))
			}
			p.total[dir] += most[dir]
		}
		p.same = p.same && slices.Equal(l.Need[0], l.Need[1])
	}
	p.begin(len(links))
	return p
}

// slowest is the latency that each path of a link may have at most: the bound,
// and Spread above the fastest path there is; 0: any.
func (p *program) slowest(l Link) (time.Duration, bool) {
	walk, _, ok := p.Graph.Cheapest(l.From, l.To, math.Inf(1), graph.Fares{Price: func(a graph.Arc) float64 {
		return p.open(l, a) * (float64(p.Graph.Latency(a)) + 1)
	}})
	if !ok {
		return 0, false
	}
	fastest := time.Duration(0)
	for _, a := range walk {
		fastest += p.Graph.Latency(a)
	}
	most := fastest + l.Spread
	if l.Bound > 0 {
		most = min(most, l.Bound)
	}
	return max(most, 1), fastest <= l.Bound || l.Bound == 0
}

// open is 1 for an arc that has room for the least share of a link, else
// infinite.
func (p *program) open(l Link, a graph.Arc) float64 {
	for dir, need := range l.Need {
		left := p.Left(a ^ graph.Arc(dir))
		for s, n := range need {
			if n > 0 && left[s] < least(n, 1) {
				return math.Inf(1)
			}
		}
	}
	return 1
}

// least is what a share of so many units takes of a need, rounded up.
func least(need int64, units int) int64 {
	return int64(vnet.PathShare{Units: units}.Of(vnet.Rate(need)))
}

// needs lists the rows a walk of a link takes, with the amount of each.
func (p *program) needs(l int, walk []graph.Arc) []entry {
	var entries []entry
	for _, a := range walk {
		for dir := range p.links[l].Need {
			if p.same && dir == 1 {
				break // the opposite arc's row says the same, see row
			}
			for s, n := range p.links[l].Need[dir] {
				if n == 0 {
					continue
				}
				if r, binds := p.row(a^graph.Arc(dir), s); binds {
					entries = append(entries, entry{r, float64(n) / p.unit})
				}
			}
		}
	}
	return entries
}

// row is the row of an arc in a span; false: its capacity can never bind.
// Where both directions of every link need the same, an arc and its opposite
// share the row of the scarcer.
func (p *program) row(a graph.Arc, span int) (int, bool) {
	left := p.Left(a)[span]
	if p.same {
		left = min(left, p.Left(a ^ 1)[span])
		a &^= 1
	}
	if left >= p.most() {
		return 0, false
	}
	key := rowKey{a, span}
	r, ok := p.rows[key]
	if !ok {
		r = p.addRow(float64(left) / p.unit)
		p.rows[key] = r
	}
	return r, true
}

// most is what all links together can take of one arc: each takes a link of
// the substrate once, in one of the directions.
func (p *program) most() int64 {
	if p.same {
		return p.total[0]
	}
	return p.total[0] + p.total[1]
}

// solve generates paths until none lowers the cost; false: some link is not
// carried, or too many pivots were needed.
func (p *program) solve(pivots int) bool {
	for quiet := 0; quiet <= len(p.links) && pivots > 0; {
		if !p.may() {
			return false
		}
		p.prices = p.duals()
		if p.relieve() {
			pivots--
			continue
		}
		l := p.next
		p.next = (p.next + 1) % max(len(p.links), 1)
		if len(p.links) == 0 {
			break
		}
		if column, ok := p.price(l); ok && p.enter(column) {
			quiet = 0
			pivots--
			continue
		}
		quiet++
	}
	return p.feasible()
}

// price finds the path of a link with the least reduced cost, if that is below
// 0, and makes it a column.
func (p *program) price(l int) (int, bool) {
	link := p.links[l]
	hop := link.Cost / p.scale
	walk, _, ok := p.Graph.Cheapest(link.From, link.To, p.prices[l]-tolerance, graph.Fares{Bound: p.bound[l], Price: func(a graph.Arc) float64 {
		return p.open(link, a) * (hop + p.toll(link, a))
	}})
	if !ok {
		return 0, false
	}
	key := walkKey(l, walk)
	if column, ok := p.known[key]; ok {
		return column, true
	}
	entries := append([]entry{{l, 1}}, p.needs(l, walk)...)
	column := p.addColumn(hop*float64(len(walk)), entries)
	p.known[key] = column
	p.paths = append(p.paths, path{l, walk})
	return column, true
}

// toll is what the duals ask for an arc. A row that is not there asks nothing.
func (p *program) toll(link Link, a graph.Arc) float64 {
	toll := 0.0
	for dir, need := range link.Need {
		key := a ^ graph.Arc(dir)
		if p.same {
			if dir == 1 {
				break
			}
			key &^= 1
		}
		for s, n := range need {
			if r, ok := p.rows[rowKey{key, s}]; ok && n > 0 {
				toll += max(0, -p.prices[r]) * float64(n) / p.unit
			}
		}
	}
	return toll
}

// walkKey names a walk of a link.
func walkKey(l int, walk []graph.Arc) string {
	key := make([]byte, 0, 4*len(walk)+4)
	for _, n := range append([]graph.Arc{graph.Arc(l)}, walk...) {
		key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return string(key)
}
