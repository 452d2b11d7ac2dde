package control

import (
	"math"
	"slices"
)

// Shortage is a chain that cannot have its rate.
type Shortage struct {
	Chain string
	Rate  float64 // bit/s it can have
	Why   string
}

// Shortages of the last reallocation, and functions whose time others take.
func (c *Controller) Shortages() []Shortage { return c.shortages }

// ration is what each function should get: what the rates cost, or less of the
// rates where processors are short, by priority and within one in proportion.
func (c *Controller) ration() []float64 {
	parts, why := c.parts()
	c.shortages = nil
	wanted := make([]float64, len(c.functions))
	for j, ch := range c.chains {
		if parts[j] < 1 {
			c.shortages = append(c.shortages, Shortage{ch.Name, parts[j] * ch.Rate, why[j]})
		}
		for k, i := range ch.Via {
			wanted[i] += parts[j] * c.needs(ch, k)
			if c.functions[i].interrupted > 0 && parts[j] == 1 {
				c.shortages = append(c.shortages, Shortage{ch.Name, ch.Rate * c.functions[i].gained(), "others take the processor of " + c.functions[i].Name})
			}
		}
	}
	for i, f := range c.functions {
		wanted[i] = min(max(wanted[i], leastShare), c.most(f))
	}
	return wanted
}

// needs is the share that a chain's rate takes of its k-th function.
func (c *Controller) needs(ch *chain, k int) float64 {
	f := c.functions[ch.Via[k]]
	need := c.load(ch, k) * f.factor.mean / f.gained()
	if !f.regulates {
		need *= 1 + spare
	}
	return need
}

// parts are what chains can have of their rates. Of one priority, those that
// share a function that is short get less alike, then all alike if the cores
// together are short.
func (c *Controller) parts() ([]float64, []string) {
	left, cores := make([]float64, len(c.functions)), c.cores+c.lent
	for i, f := range c.functions {
		left[i] = c.most(f)
	}
	parts, why := make([]float64, len(c.chains)), make([]string, len(c.chains))
	for _, group := range c.byPriority() {
		needs := make([]float64, len(c.functions))
		c.each(group, func(j, k, i int) { needs[i] += c.needs(c.chains[j], k) })
		for _, j := range group {
			parts[j] = 1
		}
		c.each(group, func(j, _, i int) {
			if part := math.Max(0, left[i]) / needs[i]; part < parts[j] {
				parts[j], why[j] = part, c.functions[i].Name+" can use no more processor"
			}
		})
		whole := 0.0
		c.each(group, func(j, k, i int) { whole += parts[j] * c.needs(c.chains[j], k) })
		if whole > cores {
			for _, j := range group {
				parts[j], why[j] = parts[j]*max(0, cores)/whole, "the processors are used up"
			}
		}
		c.each(group, func(j, k, i int) {
			left[i] -= parts[j] * c.needs(c.chains[j], k)
			cores -= parts[j] * c.needs(c.chains[j], k)
		})
	}
	return parts, why
}

// each visits the functions of chains.
func (c *Controller) each(group []int, visit func(j, k, i int)) {
	for _, j := range group {
		for k, i := range c.chains[j].Via {
			visit(j, k, i)
		}
	}
}

// byPriority groups chains, the highest first.
func (c *Controller) byPriority() (groups [][]int) {
	order := make([]int, len(c.chains))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(a, b int) int { return c.chains[b].Priority - c.chains[a].Priority })
	for n, j := range order {
		if n == 0 || c.chains[j].Priority != c.chains[order[n-1]].Priority {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], j)
	}
	return groups
}

// Admit says which part of their rates chains can have, with packets of a mean
// size and by profiles alone, and why less than all: 1 is all. A chain that is
// refused can be offered its part.
func Admit(functions []Function, chains []Chain, cores, size float64) ([]float64, []string, error) {
	c, err := New(functions, chains, cores)
	if err != nil {
		return nil, nil, err
	}
	for _, ch := range c.chains {
		ch.size.add(size)
	}
	for _, f := range c.functions {
		f.factor.add(1)
	}
	parts, why := c.parts()
	return parts, why, nil
}
