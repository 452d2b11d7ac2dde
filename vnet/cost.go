package vnet

import (
	"fmt"
	"maps"
	"time"
)

// Cost is what a lease takes, over time: resources times their period of use
// and bandwidth times time (Anhalt, thesis, section 6.3.3.2, whose c_r
// and c_b are Prices).
type Cost struct {
	Resource  float64 `json:"resource_seconds"` // nodes and routers times seconds
	Bandwidth float64 `json:"bandwidth_mbit"`   // guaranteed minima times time, per virtual link the mean of both directions
	// Kernel is the processor time that kernels of hosts spent on its packets, in seconds:
	// counters times what packets cost a host (Measurement). Nobody can quote it.
	Kernel float64 `json:"kernel_seconds,omitempty"`
	// Places is what the hosts and substrate links that it is on cost beside, as money.
	Places float64 `json:"places,omitempty"`
	Total  float64 `json:"total"` // at the lease's prices
}

// Prices are what a unit of each costs.
type Prices struct {
	Resource  float64 `json:"per_resource_second"` // c_r
	Bandwidth float64 `json:"per_mbit"`            // c_b
	Kernel    float64 `json:"per_kernel_second"`
	// Nodes and Links are added for places: of nodes and routers by second, as their hosts
	// cost, of virtual links by Mbit, as the substrate links of their paths cost together.
	Nodes map[string]float64 `json:"nodes,omitempty"`
	Links map[string]float64 `json:"links,omitempty"`
}

// MaxPrice bounds each price.
const MaxPrice = 1e12

func checkPrice(path string, price float64) error {
	if !(price >= 0 && price <= MaxPrice) {
		return fieldf(path, "%g is not between 0 and %g: leave it out if it costs nothing beside", price, float64(MaxPrice))
	}
	return nil
}

// At are the prices with those of places, of what a mapping has that a former one had
// not. What was there keeps its price, wherever it is moved to.
func (p Prices) At(s Substrate, m, former Mapping) Prices {
	hosts, wires := make(map[HostID]float64), make(map[string]float64)
	for _, h := range s.Hosts {
		hosts[h.Name] = h.Price
	}
	for _, l := range s.Links {
		wires[l.Name] = l.Price
	}
	p.Nodes, p.Links = maps.Clone(p.Nodes), maps.Clone(p.Links)
	for node, host := range m.Nodes {
		if _, was := former.Nodes[node]; !was {
			p.Nodes = withPrice(p.Nodes, node, hosts[host])
		}
	}
	for link, path := range m.Links {
		if _, was := former.Links[link]; !was {
			p.Links = withPrice(p.Links, link, path.price(m.Splits[link], wires))
		}
	}
	return p
}

// withPrice sets the price of a name, which is left out if it is nothing.
func withPrice(prices map[string]float64, name string, price float64) map[string]float64 {
	delete(prices, name)
	if price == 0 {
		return prices
	}
	if prices == nil {
		prices = make(map[string]float64)
	}
	prices[name] = price
	return prices
}

// price is what the substrate links of a path cost together; of several paths each
// counts for its part.
func (path Path) price(split []PathShare, wires map[string]float64) (sum float64) {
	for _, wire := range path {
		if len(split) == 0 {
			sum += wires[wire]
		}
	}
	for _, part := range split {
		sum += part.Path.price(nil, wires) * float64(part.Units) / float64(ShareUnits)
	}
	return sum
}

// DefaultPrices weigh all alike, as the seed's comparison does with the first two.
var DefaultPrices = Prices{Resource: 1, Bandwidth: 1, Kernel: 1}

// Check refuses prices below nothing and what is no number.
func (p Prices) Check() error {
	for _, x := range []float64{p.Resource, p.Bandwidth, p.Kernel} {
		if !(x >= 0 && x <= MaxPrice) {
			return fmt.Errorf("a price of %g is not between 0 and 1e12", x)
		}
	}
	return nil
}

// Account is what a lease costs: quoted when it is admitted, metered while it
// runs.
type Account struct {
	Prices Prices    `json:"prices"`
	Quote  *Cost     `json:"quote,omitempty"` // of the whole window, with all stages; nil: it has no end
	Hourly Cost      `json:"hourly"`          // of the running stage, or the first; the topology's at the start if there is none
	Used   Cost      `json:"used"`            // until Until; time in which it did not run is not counted
	Until  time.Time `json:"metered_until,omitzero"`
}

// Over is what a topology takes in a time.
func (t Topology) Over(d time.Duration, p Prices) Cost {
	mbit, places := 0.0, 0.0
	for _, l := range t.Links {
		rate := (l.Bandwidth[Forward].Min.Mbps() + l.Bandwidth[Reverse].Min.Mbps()) / 2
		mbit += rate
		places += rate * p.Links[l.Name]
	}
	for _, n := range t.Nodes {
		places += p.Nodes[n.Name]
	}
	for _, r := range t.Routers {
		places += p.Nodes[r.Name]
	}
	return Cost{}.Plus(Cost{
		Resource:  float64(len(t.Nodes)+len(t.Routers)) * d.Seconds(),
		Bandwidth: mbit * d.Seconds(),
		Places:    places * d.Seconds(),
	}, p)
}

// Plus adds costs.
func (c Cost) Plus(d Cost, p Prices) Cost {
	c.Resource += d.Resource
	c.Bandwidth += d.Bandwidth
	c.Kernel += d.Kernel
	c.Places += d.Places
	c.Total = p.Resource*c.Resource + p.Bandwidth*c.Bandwidth + p.Kernel*c.Kernel + c.Places
	return c
}

// Cost is what a request takes from its start until a time after it, through
// its stages. One on command counts once it has begun.
func (r Request) Cost(until time.Duration, p Prices) Cost {
	var sum Cost
	begin := time.Duration(0)
	for i := -1; i < len(r.Stages) && begin < until; {
		end, next := until, r.NextTimed(i)
		if next < len(r.Stages) {
			end = min(end, r.Stages[next].After)
		}
		sum = sum.Plus(r.At(i).Over(end-begin, p), p)
		begin, i = end, next
	}
	return sum
}

// between is what a request takes from one time after its start to another.
func (r Request) between(from, to time.Duration, p Prices) Cost {
	before, after := r.Cost(from, p), r.Cost(to, p)
	return Cost{Resource: after.Resource - before.Resource, Bandwidth: after.Bandwidth - before.Bandwidth, Places: after.Places - before.Places}
}

// Quote opens a request's account.
func (r Request) Quote(p Prices) *Account {
	a := &Account{Prices: p, Hourly: r.At(r.StageAt(0)).Over(time.Hour, p)}
	if r.For > 0 {
		whole := r.Cost(r.For, p)
		a.Quote = &whole
	}
	return a
}

// Revised is the account of a lease whose request changes at a time after its
// start. What has passed is quoted as it was.
func (a *Account) Revised(was, is Request, at time.Duration) *Account {
	if a == nil {
		return nil
	}
	at = max(at, 0)
	b := *a
	b.Hourly, b.Quote = is.At(is.StageAt(at)).Over(time.Hour, a.Prices), nil
	if is.For == 0 {
		return &b
	}
	whole := was.Cost(at, a.Prices)
	if a.Quote != nil && was.For > 0 {
		left := was.between(at, was.For, a.Prices)
		whole = Cost{Resource: a.Quote.Resource - left.Resource, Bandwidth: a.Quote.Bandwidth - left.Bandwidth, Places: a.Quote.Places - left.Places}
	}
	whole = whole.Plus(is.between(at, is.For, a.Prices), a.Prices)
	b.Quote = &whole
	return &b
}

// Metered is the lease with its account brought to a time. It counts what
// passed since the account was last brought to one, through the stages that
// were due, if the lease was running.
func (l Lease) Metered(now time.Time) Lease {
	if l.Account == nil || !now.After(l.Account.Until) {
		return l
	}
	a := *l.Account
	if l.State.Holds() && !a.Until.IsZero() {
		a.Used = a.Used.Plus(l.Held().between(a.Until.Sub(l.Window.Start), now.Sub(l.Window.Start), a.Prices), a.Prices)
	}
	a.Until = now
	a.Hourly = l.Topology().Over(time.Hour, a.Prices)
	l.Account = &a
	return l
}

// Charged is the account with what kernels spent on the lease's packets.
func (a Account) Charged(spent time.Duration) *Account {
	a.Used = a.Used.Plus(Cost{Kernel: spent.Seconds()}, a.Prices)
	return &a
}
