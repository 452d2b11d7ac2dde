package lease

import (
	"fmt"
	"maps"
	"slices"

	"sublet/embed"
	"sublet/vnet"
)

// allocation is what leases on hosts get of the substrate's elements. While
// leases move, what the former state of affairs would leave holds as well.
type allocation struct {
	engine      *embed.Embedder
	now, before *embed.Allocation
	claims      map[*entry]claims
}

// claims are those of one lease in both states of affairs.
type claims struct{ now, before *embed.Claim }

func (c claims) changed() bool { return c.now.Changed() || c.before.Changed() }

func (c claims) rates() map[string][2]vnet.Rate { return lesserRates(c.now.Rates(), c.before.Rates()) }

func newAllocation(e *embed.Embedder) allocation {
	return allocation{e, e.Allocation(), e.Allocation(), make(map[*entry]claims)}
}

// allocate gives the leases on hosts their rates. Only those are computed anew
// that share an element with a lease that came, went or changed.
func (b *Book) allocate() ([]*entry, error) {
	e, err := b.engine(b.sub)
	if err != nil {
		return nil, fmt.Errorf("allocate rates: %w", err)
	}
	if b.allocation.engine != e {
		b.allocation = newAllocation(e)
	}
	deployed := b.deployed()
	if err := b.allocation.follow(deployed); err != nil {
		return nil, fmt.Errorf("allocate rates: %w", err)
	}
	for _, e := range deployed {
		c := b.allocation.claims[e]
		if !c.changed() {
			continue
		}
		if r := c.rates(); !maps.Equal(r, e.Rates) {
			e.Rates, e.parts = r, nil
			b.touch(e)
		}
	}
	return deployed, nil
}

// deployed lists the leases that hosts are to have.
func (b *Book) deployed() []*entry {
	return slices.DeleteFunc(slices.Clone(b.active), func(e *entry) bool { return !e.onHosts() })
}

// follow enters leases that came to their hosts or changed, and takes out those
// that are not to be there any more.
func (a *allocation) follow(deployed []*entry) error {
	for e := range a.claims {
		if !e.onHosts() || e.parts == nil {
			a.leave(e)
		}
	}
	for _, e := range deployed {
		if _, ok := a.claims[e]; !ok {
			if err := a.enter(e); err != nil {
				return err
			}
		}
	}
	return a.converge()
}

// leave takes out a lease that was entered.
func (a *allocation) leave(e *entry) {
	if c, in := a.claims[e]; in {
		a.now.Leave(c.now)
		a.before.Leave(c.before)
		delete(a.claims, e)
	}
}

// converge brings what leases get up to date.
func (a *allocation) converge() error {
	if a.engine == nil {
		return nil
	}
	if err := a.now.Settle(); err != nil {
		return err
	}
	return a.before.Settle()
}

func (a *allocation) enter(e *entry) error {
	former := e.Lease
	if e.moving() {
		former = e.beforeMove()
	}
	var c claims
	var err error
	if c.now, err = a.now.Enter(embed.Tenancy{Topology: e.Topology(), Mapping: e.Mapping}); err != nil {
		return err
	}
	if c.before, err = a.before.Enter(embed.Tenancy{Topology: former.Topology(), Mapping: former.Mapping}); err != nil {
		a.now.Leave(c.now)
		return err
	}
	a.claims[e] = c
	return nil
}

// lesserRates takes the smaller of two rates, rounded down to whole bytes per
// second, which is what the kernel can hold: less than 8 bit/s are lost. What
// hosts are to remove has no rate: they have removed it before anything grows.
func lesserRates(now, before map[string][2]vnet.Rate) map[string][2]vnet.Rate {
	rounded := make(map[string][2]vnet.Rate, len(now))
	for link, r := range now {
		l, was := before[link]
		if !was { // a network with another form has it anew
			l = r
		}
		rounded[link] = [2]vnet.Rate{min(r[0], l[0]).WholeBytesDown(), min(r[1], l[1]).WholeBytesDown()}
	}
	return rounded
}
