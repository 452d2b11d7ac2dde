package flow

import "math"

// The revised simplex method with an explicit inverse of the basis (Dantzig
// and Orchard-Hays 1954). Rows are: one equality for each link, whose
// artificial variable costs much, then inequalities, each with a slack. The
// basis of artificials and slacks is feasible, and so is every one after it.

const (
	tolerance  = 1e-9
	artificial = 1e5 // cost of leaving a link out; a path costs at most its hops
)

// entry is a coefficient of a column.
type entry struct {
	row   int
	value float64
}

// column is a variable. slack marks that of an inequality.
type column struct {
	cost    float64
	entries []entry
	slack   bool
}

// simplex is a program in its restricted form, and its current basis.
type simplex struct {
	equalities int
	columns    []column
	basis      []int       // by row: the basic column
	value      []float64   // by row: of the basic variable
	inverse    [][]float64 // of the basis
	rightHand  []float64
	slackOf    []int // by row: its slack; -1: an equality
	pathColumn []int // by path: its column
	next       int   // link to be priced next
}

// begin makes one equality for each link: what is carried of it is 1.
func (s *simplex) begin(links int) {
	s.equalities = links
	for l := range links {
		s.appendRow(1, column{cost: artificial, entries: []entry{{l, 1}}})
		s.slackOf[l] = -1
	}
}

// addRow adds an inequality that no column takes yet.
func (s *simplex) addRow(left float64) int {
	r := len(s.basis)
	s.appendRow(left, column{entries: []entry{{r, 1}}, slack: true})
	return r
}

// appendRow adds a row with a variable of its own in the basis. No other basic
// column has an entry in it, so the inverse grows by a unit.
func (s *simplex) appendRow(right float64, own column) {
	for i := range s.inverse {
		s.inverse[i] = append(s.inverse[i], 0)
	}
	unit := make([]float64, len(s.basis)+1, 2*len(s.basis)+8)
	unit[len(s.basis)] = 1
	s.inverse = append(s.inverse, unit)
	s.slackOf = append(s.slackOf, len(s.columns))
	s.basis = append(s.basis, len(s.columns))
	s.columns = append(s.columns, own)
	s.value, s.rightHand = append(s.value, right), append(s.rightHand, right)
}

// addColumn adds a path.
func (s *simplex) addColumn(cost float64, entries []entry) int {
	s.pathColumn = append(s.pathColumn, len(s.columns))
	s.columns = append(s.columns, column{cost: cost, entries: entries})
	return len(s.columns) - 1
}

// duals are the prices of the rows in the current basis.
func (s *simplex) duals() []float64 {
	prices := make([]float64, len(s.basis))
	for i, c := range s.basis {
		if cost := s.columns[c].cost; cost != 0 {
			for j, v := range s.inverse[i] {
				prices[j] += cost * v
			}
		}
	}
	return prices
}

// relieve takes the slack with the most negative reduced cost into the basis;
// false: none is negative. Afterwards no arc has a negative price.
func (s *simplex) relieve() bool {
	prices := s.duals()
	best, most := -1, tolerance
	for r, slack := range s.slackOf {
		if slack >= 0 && prices[r] > most {
			best, most = slack, prices[r]
		}
	}
	return best >= 0 && s.enter(best)
}

// enter makes a column basic in place of the one that reaches 0 first; false:
// nothing bounds it, which cannot be, or it is basic.
func (s *simplex) enter(c int) bool {
	direction := make([]float64, len(s.basis))
	for i, row := range s.inverse {
		for _, e := range s.columns[c].entries {
			direction[i] += row[e.row] * e.value
		}
	}
	leave, step := -1, math.Inf(1)
	for i, d := range direction {
		if d <= tolerance {
			continue
		}
		// Of equal ratios the larger pivot, then the older column: stable, and
		// the same every time.
		ratio := max(s.value[i], 0) / d
		if leave < 0 || ratio < step-tolerance || ratio < step+tolerance && (d > direction[leave]*(1+tolerance) || d >= direction[leave]*(1-tolerance) && s.basis[i] < s.basis[leave]) {
			leave, step = i, min(step, ratio)
		}
	}
	if leave < 0 || s.basis[leave] == c {
		return false
	}
	s.pivot(c, leave, direction)
	return true
}

// pivot brings column c into the basis at a row.
func (s *simplex) pivot(c, leave int, direction []float64) {
	scale := 1 / direction[leave]
	pivotRow := s.inverse[leave]
	for j := range pivotRow {
		pivotRow[j] *= scale
	}
	s.value[leave] *= scale
	for i, d := range direction {
		if i == leave || d == 0 {
			continue
		}
		row := s.inverse[i]
		for j, v := range pivotRow {
			if v != 0 {
				row[j] -= d * v
			}
		}
		s.value[i] -= d * s.value[leave]
	}
	s.basis[leave] = c
}

// feasible says whether every link is carried.
func (s *simplex) feasible() bool {
	for i, c := range s.basis {
		if c < s.equalities && s.value[i] > 1e-7 {
			return false
		}
	}
	return true
}

// cost is the value of the current basis.
func (s *simplex) cost() float64 {
	sum := 0.0
	for i, c := range s.basis {
		if c >= s.equalities {
			sum += s.columns[c].cost * s.value[i]
		}
	}
	return sum
}

// amounts are the values of the paths.
func (s *simplex) amounts() []float64 {
	byColumn := make(map[int]float64, len(s.basis))
	for i, c := range s.basis {
		byColumn[c] = max(s.value[i], 0)
	}
	amounts := make([]float64, len(s.pathColumn))
	for p, c := range s.pathColumn {
		amounts[p] = byColumn[c]
	}
	return amounts
}
