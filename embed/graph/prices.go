package graph

import "math"

// Prices is what a search of least cost pays for an arc, and what it asks of it.
type Prices struct {
	Price []int32    // by arc
	Floor int64      // no arc is cheaper
	Left  []int64    // by arc and span
	Need  [2][]int64 // by span: of an arc taken outward, and of its opposite

	least [2]int64 // Need of one span, so that nothing always fits
	many  bool     // spans
}

// Prepare sets what a search reads in its inner loop.
func (p *Prices) Prepare() {
	p.many = len(p.Need[0]) > 1
	for i, need := range p.Need {
		p.least[i] = need[0]
		if need[0] == 0 {
			p.least[i] = math.MinInt64
		}
	}
}

// Allow says whether an arc has what is needed.
func (p *Prices) Allow(a Arc) bool { return p.ofSpans(a) >= 0 }

// closed is the price of an arc that may not be taken.
const closed = -1

// of is the price of an arc, or closed if it has not what is needed.
func (p *Prices) of(a Arc) int64 {
	if p.many {
		return p.ofSpans(a)
	}
	if p.Left[a] < p.least[0] || p.Left[a^1] < p.least[1] {
		return closed
	}
	return int64(p.Price[a])
}

// ofSpans is of, in any number of spans.
func (p *Prices) ofSpans(a Arc) int64 {
	for i, need := range p.Need {
		left := p.Left[int(a^Arc(i))*len(need):]
		for s, n := range need {
			if n > 0 && left[s] < n {
				return closed
			}
		}
	}
	return int64(p.Price[a])
}
