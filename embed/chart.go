package embed

import (
	"math"
	"slices"

	"sublet/embed/graph"
)

// charts hold what a link would cost from a host to every other if nothing
// else of its network were there: a bound from below on what it costs while
// the network is being placed, and mostly the very cost. A row is made when it
// is first asked for.
type charts struct {
	rows   [][]int32    // used or free
	used   int          // of them
	place  []int32      // by link, end and host: the row, from 1; 0: not made
	ways   []graph.Ways // by link and end
	opened []bool       // of ways
	space  []uint64
	now    []int32     // of live
	shut   []graph.Arc // by live
}

// Bounds of charts.
const (
	mostRows = 1 << 22 // amounts in rows; all are forgotten when there are more
	mostBits = 512     // hosts of a substrate whose neighbourhoods are sets of bits
)

// begin forgets what was there.
func (c *charts) begin(links, hosts int) {
	c.used = 0
	c.place = zeroed(c.place, 2*links*hosts)
	c.opened = zeroed(c.opened, 2*links)
	for len(c.ways) < 2*links {
		c.ways = append(c.ways, graph.Ways{})
	}
}

// work gives a search its working space.
func (s *search) work(c *charts, least *graph.Least) {
	s.charts, s.least = c, least
	c.begin(len(s.problem.links), len(s.left.sub.Hosts))
}

// zeroed is a list of so many zeros, in the space of another if it suffices.
func zeroed[T any](list []T, n int) []T {
	list = slices.Grow(list[:0], n)[:n]
	clear(list)
	return list
}

// row is what a link costs from an end that is placed to each host.
func (s *search) row(l, placed int) []int32 {
	v, from, hosts := &s.problem.links[l], s.host[placed], len(s.left.sub.Hosts)
	end := 0
	if !v.alike && v.ends[1] == placed {
		end = 1
	}
	at := (2*l+end)*hosts + from
	if i := s.charts.place[at]; i > 0 {
		return s.charts.rows[i-1]
	}
	if s.charts.used*hosts > mostRows {
		clear(s.charts.place)
		s.charts.used = 0
	}
	row := s.charts.next(hosts)
	s.charts.place[at] = int32(s.charts.used)
	s.fill(row, l, placed, 2*l+end)
	return row
}

// live is what a link costs from an end that is placed to each host now, beside
// the rest of the network; it says nothing of hosts that only one link joins,
// and is forgotten at the next call. False: it is the row.
func (s *search) live(l, placed int) ([]int32, bool) {
	v, c := &s.problem.links[l], s.charts
	row := s.row(l, placed)
	if !s.keen || !s.even || v.bound > 0 {
		return row, false
	}
	ways := &c.ways[2*l]
	if !v.alike && v.ends[1] == placed {
		ways = &c.ways[2*l+1]
	}
	s.need(l, placed)
	c.shut = c.shut[:0]
	s.effort.Spend(len(s.walks) / 2)
	for _, walk := range s.walks {
		c.shut = s.graph.Shut(ways, walk, &s.prices, c.shut)
		s.weighed += len(walk) / 2
	}
	if len(c.shut) == 0 {
		return row, false
	}
	if len(c.now) != len(row) {
		c.now = make([]int32, len(row))
	}
	s.graph.InnerHops(s.host[placed], ways, hop, c.now, &c.space)
	for _, a := range c.shut {
		s.graph.Reopen(ways, a)
	}
	s.weighed += 20
	return c.now, true
}

// next is a row to be filled in.
func (c *charts) next(hosts int) []int32 {
	if c.used == len(c.rows) {
		c.rows = append(c.rows, nil)
	}
	if len(c.rows[c.used]) != hosts {
		c.rows[c.used] = make([]int32, hosts)
	}
	c.used++
	return c.rows[c.used-1]
}

// fill makes a row, in the substrate as it was before anything was placed.
func (s *search) fill(row []int32, l, placed, way int) {
	v, from := &s.problem.links[l], s.host[placed]
	out := v.outward(placed)
	prices := &s.before
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
	case s.even:
		ways := &s.charts.ways[way]
		if !s.charts.opened[way] {
			s.charts.opened[way] = true
			s.graph.Open(ways, prices)
		}
		s.graph.Hops(from, ways, hop, row, &s.charts.space)
	default:
		s.least.Grow(from, math.MaxInt64, prices)
		for h := range row {
			row[h] = int32(min(s.least.Cost(h), graph.Far))
		}
	}
}
