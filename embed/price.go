package embed

import (
	"slices"

	"sublet/vnet"
)

// hop is the price of a link of the substrate where nothing makes it dearer.
const hop = 1024

// objective is what an embedding pays for what it uses, beside the traffic
// times hops that it always pays for. Both are functions of the part of a
// capacity that is taken before, 0 to 1.
type objective struct {
	arc  func(used float64) float64              // hops that a hop counts for, at least 1
	host func(used float64, asleep bool) float64 // hops of the request's whole traffic, once for a host
}

// objectives by name.
var objectives = map[vnet.Objective]objective{
	vnet.RevenueOverCost: revenueOverCost,
	vnet.LoadBalance:     loadBalance,
	vnet.Energy:          energy,
}

// revenueOverCost takes the least bandwidth: what a request pays is given, so
// it is the best ratio too.
var revenueOverCost = objective{
	arc:  func(float64) float64 { return 1 },
	host: func(float64, bool) float64 { return 0 },
}

// loadBalance avoids what is used already, the more the fuller it is, as the
// delay of a queue grows with its load (Fortz and Thorup, INFOCOM 2000).
var loadBalance = objective{
	arc:  delay,
	host: func(used float64, _ bool) float64 { return delay(used) / 8 },
}

// energy wakes as few hosts as it can, and then takes the least bandwidth.
var energy = objective{
	arc: func(float64) float64 { return 1 },
	host: func(_ float64, asleep bool) float64 {
		if asleep {
			return 64 // longer than paths are
		}
		return 0
	},
}

// delay is 1/(1-load), up to 16.
func delay(used float64) float64 { return 1 / max(1-used, 1./16) }

// setPrices sets the price of every arc and every host.
func (s *search) setPrices(name vnet.Objective) {
	of, known := objectives[name]
	if !known {
		of = revenueOverCost
	}
	s.prices.Floor = hop
	first := s.residual.arc(0)
	s.prices.Price = make([]int32, 2*len(s.residual.sub.Links))
	s.prices.Left = s.residual.amounts[int(first)*s.residual.spans:]
	s.uniform = s.graph.Flat() && len(s.residual.sub.Hosts) <= maxBitsetHosts
	for i := range s.prices.Price {
		s.prices.Price[i] = int32(hop * of.arc(s.residual.used(first+resource(i))))
		s.uniform = s.uniform && s.prices.Price[i] == hop
	}
	s.initial = s.prices
	s.initial.Left = slices.Clone(s.prices.Left)
	s.linkCosts = make([]float64, len(s.problem.links))
	for _, l := range s.problem.links {
		s.openWeight += l.weight
	}
	s.hostCosts = make([]float64, len(s.residual.sub.Hosts))
	for h := range s.hostCosts {
		asleep := s.residual.least(s.residual.of(h, guests)) == WholeHost
		s.hostCosts[h] = hop * s.openWeight * of.host(s.residual.used(s.residual.of(h, cpu)), asleep)
	}
}

// used is the part of a resource that is taken in the span in which most is.
func (r *residuals) used(i resource) float64 {
	capacity := r.capacity(i)
	if capacity <= 0 {
		return 1
	}
	return 1 - float64(max(r.least(i), 0))/float64(capacity)
}

// hostCost is what a host costs a node: it is paid once for all on it.
func (s *search) hostCost(host int) float64 {
	if s.nodesAt[host] > 0 {
		return 0
	}
	return s.hostCosts[host]
}
