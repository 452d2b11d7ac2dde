package embed

import (
	"math"
	"slices"

	"sublet/embed/graph"
)

// costTables hold the cost of a link from a host to every other host if nothing
// else of its network were placed. That is a lower bound on the cost of the link
// while the network is being placed, and mostly the exact cost. A row is
// computed when it is first asked for.
type costTables struct {
	rows     [][]int32        // in use or free
	used     int              // the number of rows in use
	rowOf    []int32          // by link, end and host: the row, from 1; 0: not made
	hops     []graph.HopGraph // by link and end
	hopsMade []bool           // whether hops is filled in, by link and end
	space    []uint64
	residual []int32     // the row that residualRow returns
	closed   []graph.Arc // arcs that residualRow closed
}

// Bounds of cost tables.
const (
	maxTableSize   = 1 << 22 // entries in all rows; beyond, all rows are dropped
	maxBitsetHosts = 512     // hosts of a substrate, up to which neighbours are sets of bits
)

// begin drops all rows.
func (c *costTables) begin(links, hosts int) {
	c.used = 0
	c.rowOf = zeroed(c.rowOf, 2*links*hosts)
	c.hopsMade = zeroed(c.hopsMade, 2*links)
	for len(c.hops) < 2*links {
		c.hops = append(c.hops, graph.HopGraph{})
	}
}

// useTables gives a search its working space.
func (s *search) useTables(c *costTables, least *graph.Least) {
	s.tables, s.shortest = c, least
	c.begin(len(s.problem.links), len(s.residual.sub.Hosts))
}

// zeroed is a list of so many zeros, in the space of another if it suffices.
func zeroed[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// row is the cost of a link from its placed end to each host.
func (s *search) row(l, placed int) []int32 {
	v, from, hosts := &s.problem.links[l], s.host[placed], len(s.residual.sub.Hosts)
	end := 0
	if !v.symmetric && v.ends[1] == placed {
		end = 1
	}
	at := (2*l+end)*hosts + from
	if i := s.tables.rowOf[at]; i > 0 {
		return s.tables.rows[i-1]
	}
	if s.tables.used*hosts > maxTableSize {
		clear(s.tables.rowOf)
		s.tables.used = 0
	}
	row := s.tables.next(hosts)
	s.tables.rowOf[at] = int32(s.tables.used)
	s.fillRow(row, l, placed, 2*l+end)
	return row
}

// residualRow is the cost of a link from its placed end to each host beside what
// is placed of the network. Entries of hosts that only one link joins are not
// set. The next call overwrites it. False: nothing placed changes the cost, and
// it is the row.
func (s *search) residualRow(l, placed int) ([]int32, bool) {
	v, c := &s.problem.links[l], s.tables
	row := s.row(l, placed)
	if !s.residualCosts || !s.uniform || v.bound > 0 {
		return row, false
	}
	ways := &c.hops[2*l]
	if !v.symmetric && v.ends[1] == placed {
		ways = &c.hops[2*l+1]
	}
	s.need(l, placed)
	c.closed = c.closed[:0]
	s.effort.Spend(len(s.walks) / 2)
	for _, walk := range s.walks {
		c.closed = s.graph.Close(ways, walk, &s.prices, c.closed)
		s.otherWork += len(walk) / 2
	}
	if len(c.closed) == 0 {
		return row, false
	}
	if len(c.residual) != len(row) {
		c.residual = make([]int32, len(row))
	}
	s.graph.InnerHops(s.host[placed], ways, hop, c.residual, &c.space)
	for _, a := range c.closed {
		s.graph.Reopen(ways, a)
	}
	s.otherWork += 20
	return c.residual, true
}

// next is a row to fill in.
func (c *costTables) next(hosts int) []int32 {
	if c.used == len(c.rows) {
		c.rows = append(c.rows, nil)
	}
	if len(c.rows[c.used]) != hosts {
		c.rows[c.used] = make([]int32, hosts)
	}
	c.used++
	return c.rows[c.used-1]
}

// fillRow computes a row on the substrate as it was before anything was placed.
func (s *search) fillRow(row []int32, l, placed, way int) {
	v, from := &s.problem.links[l], s.host[placed]
	out := v.outward(placed)
	prices := &s.initial
	prices.Need = [2][]int64{v.min[out], v.min[out.Opposite()]}
	switch {
	case v.bound > 0:
		reach := s.graph.Reach(from, graph.Query{To: -1, Bound: v.bound, Allow: prices.Allow})
		for h := range row {
			if hops, ok := reach.Hops(h); ok {
				row[h] = int32(hops) * hop
			} else {
				row[h] = graph.Far
			}
		}
		row[from] = 0
	case s.uniform:
		ways := &s.tables.hops[way]
		if !s.tables.hopsMade[way] {
			s.tables.hopsMade[way] = true
			s.graph.FillHops(ways, prices)
		}
		s.graph.Hops(from, ways, hop, row, &s.tables.space)
	default:
		s.shortest.Grow(from, math.MaxInt64, prices)
		for h := range row {
			row[h] = int32(min(s.shortest.Cost(h), graph.Far))
		}
	}
}
