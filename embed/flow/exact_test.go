package flow

import (
	"math/big"
	"slices"
	"time"

	"sublet/embed/graph"
)

// exactOptimum solves the same program by definition: all walks there are, in exact
// fractions, by the tableau method with Bland's rule (1977). Only for a
// handful of hosts. False: infeasible.
func exactOptimum(sub Substrate, links []Link) (*big.Rat, bool) {
	var t tableau
	var walks [][]graph.Arc
	var of []int
	for l, link := range links {
		all := sub.Graph.Walks(link.From, link.To, 5000, graph.Query{Bound: link.Bound, Allow: func(graph.Arc) bool { return true }})
		fastest := time.Duration(1 << 62)
		for _, w := range all {
			if opens(sub, link, w) {
				fastest = min(fastest, latencyOf(sub.Graph, w))
			}
		}
		for _, w := range all {
			if opens(sub, link, w) && latencyOf(sub.Graph, w) <= fastest+link.Spread {
				walks, of = append(walks, w), append(of, l)
			}
		}
	}
	// Equalities with artificial variables, then a row for every arc and span.
	for l := range links {
		row := make([]*big.Rat, len(walks))
		for i := range walks {
			row[i] = ratOf(of[i] == l)
		}
		t.rows, t.right, t.equality = append(t.rows, row), append(t.right, big.NewRat(1, 1)), append(t.equality, true)
	}
	arcs := map[rowKey]bool{}
	for i, w := range walks {
		for _, a := range w {
			for dir, need := range links[of[i]].Need {
				for s := range need {
					arcs[rowKey{a ^ graph.Arc(dir), s}] = true
				}
			}
		}
	}
	keys := make([]rowKey, 0, len(arcs))
	for k := range arcs {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b rowKey) int { return int(a.arc-b.arc)*8 + a.span - b.span })
	for _, k := range keys {
		row := make([]*big.Rat, len(walks))
		for i, w := range walks {
			row[i] = new(big.Rat)
			for dir, need := range links[of[i]].Need {
				if slices.Contains(w, k.arc^graph.Arc(dir)) {
					row[i].Add(row[i], new(big.Rat).SetInt64(need[k.span]))
				}
			}
		}
		t.rows, t.right, t.equality = append(t.rows, row), append(t.right, new(big.Rat).SetInt64(sub.Left(k.arc)[k.span])), append(t.equality, false)
	}
	costs := make([]*big.Rat, len(walks))
	for i, w := range walks {
		costs[i] = new(big.Rat).SetFloat64(links[of[i]].Cost * float64(len(w)))
	}
	return t.minimum(costs)
}

func ratOf(b bool) *big.Rat {
	if b {
		return big.NewRat(1, 1)
	}
	return new(big.Rat)
}

func latencyOf(g *graph.Graph, walk []graph.Arc) time.Duration {
	sum := time.Duration(0)
	for _, a := range walk {
		sum += g.Latency(a)
	}
	return sum
}

// opens says whether every arc of a walk has room for a link's least share,
// without which no share of it can be rounded.
func opens(sub Substrate, l Link, walk []graph.Arc) bool {
	for _, a := range walk {
		for dir, need := range l.Need {
			for s, n := range need {
				if n > 0 && sub.Left(a ^ graph.Arc(dir))[s] < (n+255)/256 {
					return false
				}
			}
		}
	}
	return true
}

// tableau of equalities and inequalities (at most) with right sides of at
// least 0.
type tableau struct {
	rows     [][]*big.Rat
	right    []*big.Rat
	equality []bool
}

// minimum of costs times x, x >= 0, in two phases.
func (t *tableau) minimum(costs []*big.Rat) (*big.Rat, bool) {
	n, m := len(costs), len(t.rows)
	basis := make([]int, m)
	for i := range t.rows {
		for j := range m {
			t.rows[i] = append(t.rows[i], ratOf(i == j))
		}
		basis[i] = n + i
	}
	phase := func(cost func(int) *big.Rat, allowed func(int) bool) {
		for {
			enter := -1
			for j := 0; j < n+m && enter < 0; j++ {
				if !allowed(j) || slices.Contains(basis, j) {
					continue
				}
				reduced := new(big.Rat).Set(cost(j))
				for i := range t.rows {
					reduced.Sub(reduced, new(big.Rat).Mul(cost(basis[i]), t.rows[i][j]))
				}
				if reduced.Sign() < 0 {
					enter = j
				}
			}
			if enter < 0 {
				return
			}
			t.pivot(basis, enter)
		}
	}
	artificial := func(j int) bool { return j >= n && t.equality[j-n] }
	phase(func(j int) *big.Rat { return ratOf(artificial(j)) }, func(int) bool { return true })
	for i, b := range basis {
		if artificial(b) && t.right[i].Sign() > 0 {
			return nil, false
		}
	}
	cost := func(j int) *big.Rat {
		if j < n {
			return costs[j]
		}
		return new(big.Rat)
	}
	// Artificial variables still basic are 0 and stay so: their rows are
	// pivoted on first whenever a column has an entry in them.
	for i, b := range basis {
		if !artificial(b) {
			continue
		}
		for j := range n {
			if t.rows[i][j].Sign() != 0 {
				t.eliminate(basis, i, j)
				break
			}
		}
	}
	phase(cost, func(j int) bool { return !artificial(j) })
	sum := new(big.Rat)
	for i, b := range basis {
		sum.Add(sum, new(big.Rat).Mul(cost(b), t.right[i]))
	}
	return sum, true
}

// pivot takes a column in for the row that bounds it first, the one with the
// smallest index among equals.
func (t *tableau) pivot(basis []int, enter int) {
	leave := -1
	var least *big.Rat
	for i, row := range t.rows {
		if row[enter].Sign() <= 0 {
			continue
		}
		ratio := new(big.Rat).Quo(t.right[i], row[enter])
		if leave < 0 || ratio.Cmp(least) < 0 || ratio.Cmp(least) == 0 && basis[i] < basis[leave] {
			leave, least = i, ratio
		}
	}
	t.eliminate(basis, leave, enter)
}

func (t *tableau) eliminate(basis []int, leave, enter int) {
	inverse := new(big.Rat).Inv(t.rows[leave][enter])
	for j := range t.rows[leave] {
		t.rows[leave][j] = new(big.Rat).Mul(t.rows[leave][j], inverse)
	}
	t.right[leave] = new(big.Rat).Mul(t.right[leave], inverse)
	for i := range t.rows {
		factor := t.rows[i][enter]
		if i == leave || factor.Sign() == 0 {
			continue
		}
		for j := range t.rows[i] {
			t.rows[i][j] = new(big.Rat).Sub(t.rows[i][j], new(big.Rat).Mul(factor, t.rows[leave][j]))
		}
		t.right[i] = new(big.Rat).Sub(t.right[i], new(big.Rat).Mul(factor, t.right[leave]))
	}
	basis[leave] = enter
}
