package embed

import (
	"sublet/embed/rate"
	"sublet/vnet"
)

// Allocation keeps every directed element of a substrate allocated among the
// leases that run on it, while they come, change and go. What it costs goes
// with what changed and who shares an element with that, not with what runs.
type Allocation struct {
	embedder *Embedder
	table    *rate.Table
}

// Claim is one running lease in an Allocation.
type Claim struct {
	tenancy Tenancy
	rates   *rate.Claim
}

// Allocation returns one of the embedder's substrate, on which nothing runs.
func (e *Embedder) Allocation() *Allocation {
	return &Allocation{e, rate.NewTable(rate.Capacities(e.sub))}
}

// Enter adds a lease, which must not be changed from then on; an error says
// which of its links is mapped to what is not there.
func (a *Allocation) Enter(t Tenancy) (*Claim, error) {
	demands, err := demandsOf(a.embedder.graph, a.embedder.sub, t)
	if err != nil {
		return nil, err
	}
	rates, err := a.table.Enter(demands)
	return &Claim{t, rates}, err
}

// Leave takes a lease out.
func (a *Allocation) Leave(c *Claim) { a.table.Leave(c.rates) }

// Settle brings the rates up to date. The error is *rate.Infeasible.
func (a *Allocation) Settle() error { return a.table.Settle() }

// Changed says whether Rates may differ from what it returned last.
func (c *Claim) Changed() bool { return c.rates.Changed() }

// Rates gives each virtual link and Direction the smallest of its elements'
// rates, or the largest rate whose parts on all its paths are at most that;
// best effort gets 0.
func (c *Claim) Rates() map[string][2]vnet.Rate {
	given := c.rates.Rates()
	rates := make(map[string][2]vnet.Rate, len(c.tenancy.Topology.Links))
	for _, l := range c.tenancy.Topology.Links {
		both := [2]vnet.Rate{vnet.Unbounded, vnet.Unbounded}
		for _, share := range c.tenancy.Mapping.Paths(l.Name) {
			for dir, r := range given[:2] {
				both[dir] = min(both[dir], share.Whole(r))
			}
			given = given[2:]
		}
		rates[l.Name] = [2]vnet.Rate{min(both[0], l.Bandwidth[0].Max), min(both[1], l.Bandwidth[1].Max)}
	}
	return rates
}
