package rate

import (
	"errors"
	"fmt"
	"slices"

	"sublet/vnet"
)

// Table keeps the elements of a substrate allocated while demands come and go.
// What an element gives follows from the demands on that element alone, so
// who comes or goes changes the rates of those they share an element with and
// of nobody else: the rates are those of a new table with the same claims.
type Table struct {
	capacities map[Element]vnet.Rate
	shares     map[Element]*share // elements that anybody runs over
	stale      []*share           // of them, those to be allocated anew
}

// share is an element among those who run over it.
type share struct {
	element Element
	users   []use
	stale   bool
}

// use is where a claim runs over an element: the nth of a demand's.
type use struct {
	claim       *Claim
	demand, nth int
}

// Claim is demands that entered a table together.
type Claim struct {
	demands []Demand
	given   [][]vnet.Rate // by demand and its elements
	changed bool
}

// NewTable returns one that nobody has entered; capacities stay the caller's.
func NewTable(capacities map[Element]vnet.Rate) *Table {
	return &Table{capacities: capacities, shares: make(map[Element]*share)}
}

// Enter adds demands, which must not be changed from then on. An error says
// which of them runs over no element, or over one that is not there; then
// nothing was added.
func (t *Table) Enter(demands []Demand) (*Claim, error) {
	c := &Claim{demands: demands, given: make([][]vnet.Rate, len(demands)), changed: true}
	for _, d := range demands {
		if len(d.Elements) == 0 {
			return nil, errors.New("allocate rates: a demand runs over no element")
		}
		for _, e := range d.Elements {
			if _, ok := t.capacities[e]; !ok {
				return nil, fmt.Errorf("allocate rates: the substrate has no element %s", e)
			}
		}
	}
	for i, d := range demands {
		c.given[i] = make([]vnet.Rate, len(d.Elements))
		for nth, e := range d.Elements {
			s := t.shares[e]
			if s == nil {
				s = &share{element: e}
				t.shares[e] = s
			}
			s.users = append(s.users, use{c, i, nth})
			t.spoil(s)
		}
	}
	return c, nil
}

// Leave takes a claim out again.
func (t *Table) Leave(c *Claim) {
	for _, d := range c.demands {
		for _, e := range d.Elements {
			if s := t.shares[e]; s != nil {
				t.spoil(s)
				s.users = slices.DeleteFunc(s.users, func(u use) bool { return u.claim == c })
				if len(s.users) == 0 {
					delete(t.shares, e)
				}
			}
		}
	}
}

// spoil notes that an element is to be allocated anew.
func (t *Table) spoil(s *share) {
	if !s.stale {
		s.stale = true
		t.stale = append(t.stale, s)
	}
}

// Settle allocates the elements whose demands changed. The error is
// *Infeasible; what is left is then settled the next time.
func (t *Table) Settle() error {
	for len(t.stale) > 0 {
		s := t.stale[0]
		if err := s.allocate(t.capacities[s.element]); err != nil {
			return err
		}
		s.stale, t.stale = false, t.stale[1:]
	}
	return nil
}

// allocate shares the element out.
func (s *share) allocate(capacity vnet.Rate) error {
	asked := make([]vnet.Bandwidth, len(s.users))
	for i, u := range s.users {
		asked[i] = u.claim.demands[u.demand].Bandwidth
	}
	rates, err := Allocate(capacity, asked)
	var infeasible *Infeasible
	if errors.As(err, &infeasible) {
		infeasible.Element = s.element
		return infeasible
	}
	for i, u := range s.users {
		if given := &u.claim.given[u.demand][u.nth]; *given != rates[i] {
			*given, u.claim.changed = rates[i], true
		}
	}
	return nil
}

// Changed says whether Rates may differ from what it returned last.
func (c *Claim) Changed() bool { return c.changed }

// Rates are, for each demand in order, the smallest of its elements' rates.
func (c *Claim) Rates() []vnet.Rate {
	c.changed = false
	rates := make([]vnet.Rate, len(c.given))
	for i, given := range c.given {
		rates[i] = slices.Min(given)
	}
	return rates
}
