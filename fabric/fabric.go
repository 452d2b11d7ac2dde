// Package relay is how a sender pins the path of its packets through a fabric
// of plain IP routers (Nakamura, thesis, sections 5.3 and 5.5.2): loopless k-shortest paths,
// and for each the shortest list of relays, one tunnel header per relay, with
// which the fabric's own forwarding cannot but follow that path.
package fabric

import (
	"fmt"
	"math"
)

// Fabric is a graph of switches, numbered from 0, with a cost per direction of
// a link, as a link-state protocol knows it.
type Fabric struct {
	leaving [][]Arc
	into    *reverseArcs // nil: not made yet
	toward  []*distances // by target; nil: not made yet
}

// Arc is one direction of a link.
type Arc struct {
	To   int
	Cost int // positive
	Link int // tells parallel links apart; both directions may share it
}

// NewFabric returns a fabric of n switches without links.
func NewFabric(n int) *Fabric {
	return &Fabric{leaving: make([][]Arc, n), toward: make([]*distances, n)}
}

// Len is the number of switches.
func (f *Fabric) Len() int { return len(f.leaving) }

// Join adds a link with the same cost both ways.
func (f *Fabric) Join(a, b, cost, link int) error {
	if err := f.Add(a, Arc{b, cost, link}); err != nil {
		return err
	}
	return f.Add(b, Arc{a, cost, link})
}

// Add adds one direction of a link. What was computed before is forgotten.
func (f *Fabric) Add(from int, a Arc) error {
	switch {
	case from < 0 || from >= f.Len() || a.To < 0 || a.To >= f.Len():
		return fmt.Errorf("link %d from switch %d to %d: there are %d switches", a.Link, from, a.To, f.Len())
	case from == a.To:
		return fmt.Errorf("link %d leads from switch %d to itself", a.Link, from)
	case a.Cost <= 0 || a.Cost > maxCost:
		return fmt.Errorf("link %d costs %d: costs are 1 to %d", a.Link, a.Cost, maxCost)
	}
	f.leaving[from] = append(f.leaving[from], a)
	f.into = nil
	clear(f.toward)
	return nil
}

// maxCost is that of OSPF (RFC 2328, 16 bits).
const maxCost = 1<<16 - 1

// Leaving lists the links that leave a switch.
func (f *Fabric) Leaving(from int) []Arc { return f.leaving[from] }

// Without is the fabric less the arcs that drop names.
func (f *Fabric) Without(drop func(from int, a Arc) bool) *Fabric {
	rest := NewFabric(f.Len())
	for from, arcs := range f.leaving {
		for _, a := range arcs {
			if !drop(from, a) {
				rest.leaving[from] = append(rest.leaving[from], a)
			}
		}
	}
	return rest
}

// distances is how every switch forwards to one target.
type distances struct {
	dist  []int32 // cost of the shortest path; unreachable where there is none
	paths []uint8 // how many shortest paths: 0, 1, or 2 for more
}

const unreachable = math.MaxInt32

// distancesTo computes, once, how all switches forward to a target.
func (f *Fabric) distancesTo(target int) *distances {
	if f.toward[target] == nil {
		f.toward[target] = f.newDistances(target)
	}
	return f.toward[target]
}

// newDistances searches from the target against the arcs' direction: breadth first
// where all links cost the same, else by Dijkstra's algorithm.
func (f *Fabric) newDistances(target int) *distances {
	d := &distances{dist: make([]int32, f.Len()), paths: make([]uint8, f.Len())}
	for i := range d.dist {
		d.dist[i] = unreachable
	}
	d.dist[target], d.paths[target] = 0, 1
	if into := f.reversed(); into.uniform {
		d.expand(into, int32(target))
	} else {
		d.relax(into, int32(target))
	}
	return d
}

func (d *distances) expand(into *reverseArcs, target int32) {
	reached := make([]int32, 1, len(d.dist))
	reached[0] = target
	for at := 0; at < len(reached); at++ {
		via := reached[at]
		for _, a := range into.arcs[into.first[via]:into.first[via+1]] {
			if d.dist[a.from] == unreachable {
				reached = append(reached, a.from)
			}
			d.meet(via, a)
		}
	}
}

func (d *distances) relax(into *reverseArcs, target int32) {
	q := queue{{0, target}}
	for len(q) > 0 {
		at := q.pop()
		if at.cost > d.dist[at.node] {
			continue
		}
		for _, a := range into.arcs[into.first[at.node]:into.first[at.node+1]] {
			if d.meet(at.node, a) {
				q.push(item{d.dist[a.from], a.from})
			}
		}
	}
}

// meet looks at a way to the target through via; true: it is the best so far.
func (d *distances) meet(via int32, a source) bool {
	cost, known := d.dist[via]+a.cost, d.dist[a.from]
	if cost < known {
		d.dist[a.from], d.paths[a.from] = cost, d.paths[via]
	} else if cost == known {
		d.paths[a.from] = 2
	}
	return cost < known
}

// reverseArcs is the arcs that lead into each switch, one after the other.
type reverseArcs struct {
	first   []int32 // index of a switch's first arc
	arcs    []source
	uniform bool // all cost the same
}

// source is where an arc comes from.
type source struct{ from, cost int32 }

func (f *Fabric) reversed() *reverseArcs {
	if f.into == nil {
		f.into = f.newReversed()
	}
	return f.into
}

func (f *Fabric) newReversed() *reverseArcs {
	m := &reverseArcs{first: make([]int32, f.Len()+1), uniform: true}
	cost := 0
	for _, arcs := range f.leaving {
		for _, a := range arcs {
			m.first[a.To+1]++
			m.uniform = m.uniform && (cost == 0 || a.Cost == cost)
			cost = a.Cost
		}
	}
	for i := range f.leaving {
		m.first[i+1] += m.first[i]
	}
	m.arcs = make([]source, m.first[f.Len()])
	next := append([]int32(nil), m.first...)
	for from, arcs := range f.leaving {
		for _, a := range arcs {
			m.arcs[next[a.To]] = source{int32(from), int32(a.Cost)}
			next[a.To]++
		}
	}
	return m
}

// Distance is the cost of the shortest path; false if there is none.
func (f *Fabric) Distance(from, to int) (int, bool) {
	d := f.distancesTo(to).dist[from]
	return int(d), d != unreachable
}

// Next lists the arcs by which a switch forwards to a target: several where
// shortest paths are equally long (equal-cost multipath).
func (f *Fabric) Next(at, target int) []Arc {
	d := f.distancesTo(target)
	var next []Arc
	for _, a := range f.leaving[at] {
		if d.dist[a.To] != unreachable && d.dist[a.To]+int32(a.Cost) == d.dist[at] {
			next = append(next, a)
		}
	}
	return next
}
