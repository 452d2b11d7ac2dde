package control

import (
	"fmt"
	"math"
)

// Bounds of changes.
const (
	leastShare = 0.005 // of a core: a sample of less takes longer than two seconds
	least      = 0.005 // relative change that is worth a reallocation
	surely     = 2.5   // standard errors that a correction is above
	misgiven   = 0.02  // of a quota, what the kernel gives more or less than thought that is corrected at once
	early      = 4     // samples after an answer before a large correction
	settled    = 10    // samples after an answer before any correction
	again      = 15    // samples after a correction before the next
	pause      = 3     // samples from a reallocation to the next
)

// Chain has a rate through functions.
type Chain struct {
	Name     string
	Rate     float64 // bit/s where it begins
	Via      []int   // functions, in order
	Priority int     // the higher goes first when processors are short
}

// chain is what the controller knows of one.
type chain struct {
	Chain
	size  level
	reach []level // of each function: what it gets of what the one before took
}

// Controller holds the rates of chains through functions that they may share.
type Controller struct {
	functions []*function
	chains    []*chain
	cores     float64
	lent      float64 // cores beside these
	since     int     // samples since the last reallocation
	moved     bool    // a level is new
	corrected bool    // since the last answer to that
	shortages []Shortage
}

// New controls functions that have so many cores together.
func New(functions []Function, chains []Chain, cores float64) (*Controller, error) {
	c := &Controller{cores: cores, since: pause}
	for _, f := range functions {
		if !f.Profile.Known() {
			f.Profile = Profile{Fixed: 1}
		}
		if f.Most == 0 {
			f.Most = 1
		}
		c.functions = append(c.functions, &function{Function: f, share: max(f.Share, leastShare)})
	}
	uses := make([]int, len(functions))
	for _, each := range chains {
		if each.Rate <= 0 || len(each.Via) == 0 {
			return nil, fmt.Errorf("chain %s has no rate or no functions", each.Name)
		}
		for _, i := range each.Via {
			if i < 0 || i >= len(functions) {
				return nil, fmt.Errorf("chain %s goes through function %d of %d", each.Name, i, len(functions))
			}
			uses[i]++
		}
		c.chains = append(c.chains, &chain{Chain: each, reach: make([]level, len(each.Via))})
	}
	for _, each := range chains {
		first := c.functions[each.Via[0]]
		first.regulates = uses[each.Via[0]] == 1 && !first.Limited
	}
	return c, nil
}

// Lend has functions get more than their most, so many cores together, up to one each,
// until it says otherwise.
func (c *Controller) Lend(cores float64) { c.lent = cores }

// most is what a function can get.
func (c *Controller) most(f *function) float64 { return max(f.Most, min(f.Most+c.lent, 1)) }

// Shares of the functions, in cores.
func (c *Controller) Shares() []float64 {
	list := make([]float64, len(c.functions))
	for i, f := range c.functions {
		list[i] = f.share
	}
	return list
}

// Step takes what was counted in an interval, of chains where they begin and of
// functions, and says whether shares changed. Intervals are 100 ms: five
// periods of a quota.
func (c *Controller) Step(seconds float64, entered []Count, samples []Sample) bool {
	for j, ch := range c.chains {
		if 8*entered[j].Bytes >= idle*ch.Rate*seconds && entered[j].Packets > 0 {
			c.moved = ch.size.add(entered[j].Bytes/entered[j].Packets) || c.moved
		} else {
			ch.size.odds = 0
		}
		c.moved = ch.follow(j, samples) || c.moved
	}
	for i, f := range c.functions {
		c.moved = f.learn(samples[i], seconds, c.work(i)) || c.moved
	}
	c.since++
	if c.since < pause || c.unsettled() {
		return false
	}
	return c.reallocate()
}

// follow learns how much of a chain's packets each function lets through.
func (ch *chain) follow(j int, samples []Sample) (moved bool) {
	for k := 1; k < len(ch.Via); k++ {
		took, came := samples[ch.Via[k-1]].Served[j].Packets, samples[ch.Via[k]].Arrived[j].Packets
		if took > 0 {
			moved = ch.reach[k].add(came/took) || moved
		}
	}
	return moved
}

// unsettled says whether a quantity is between two levels: an answer would be
// to neither.
func (c *Controller) unsettled() bool {
	for _, ch := range c.chains {
		if ch.size.unsettled() {
			return true
		}
	}
	for _, f := range c.functions {
		if f.factor.unsettled() {
			return true
		}
	}
	return false
}

// load is the work a second of a chain's rate at its k-th function, before the
// factor.
func (c *Controller) load(ch *chain, k int) float64 {
	if ch.size.n == 0 {
		return 0
	}
	packets := ch.Rate / 8 / ch.size.mean
	for _, r := range ch.reach[1 : k+1] {
		if r.n > 0 {
			packets *= min(r.mean, 1)
		}
	}
	return c.functions[ch.Via[k]].Profile.Cost(packets, packets*ch.size.mean)
}

// work a second of all rates at a function.
func (c *Controller) work(i int) (sum float64) {
	for _, ch := range c.chains {
		for k, at := range ch.Via {
			if at == i {
				sum += c.load(ch, k)
			}
		}
	}
	return sum
}

// doubt is the standard error of what a function should get, relative.
func (c *Controller) doubt(i int) float64 {
	f := c.functions[i]
	sum := math.Pow(f.factor.doubt(), 2) + math.Pow(f.gain.doubt(), 2)
	for _, ch := range c.chains {
		for _, at := range ch.Via {
			if at == i {
				sum += math.Pow(ch.size.doubt(), 2)
			}
		}
	}
	return math.Sqrt(sum)
}

// reallocate gives every function what it should get, if that is worth it for
// one of them.
func (c *Controller) reallocate() bool {
	wanted := c.ration()
	worth := false
	for i, f := range c.functions {
		worth = worth || f.factor.n > 0 && c.worth(i, wanted[i])
	}
	answer := c.moved
	c.moved = false
	if !worth {
		return false
	}
	c.corrected = !answer || c.since < settled // a level that follows from an answer is its correction
	for i, f := range c.functions {
		if f.factor.n > 0 {
			f.set(wanted[i])
		}
	}
	c.since = 0
	return true
}

// worth says whether a function should get another share: at once where a level
// is new and far from it; by a correction only when it is sure.
func (c *Controller) worth(i int, wanted float64) bool {
	f := c.functions[i]
	off := wanted/f.share - 1
	if c.moved && math.Abs(off) > oddness/2 {
		return true
	}
	if !f.regulates && off < 0 && off > -spare {
		return false // what it has more than it needs is spare
	}
	enough := max(least, surely*c.doubt(i))
	switch {
	case c.corrected:
		return c.since >= again && math.Abs(off) > enough
	case c.since < settled:
		if f.gain.n > 1 && math.Abs(f.gain.mean/f.assumed-1) > misgiven && f.regulates {
			return true // that is known surely and soon
		}
		return c.since >= early && math.Abs(off) > max(oddness/2, 2*c.doubt(i))
	}
	return math.Abs(off) > enough
}
