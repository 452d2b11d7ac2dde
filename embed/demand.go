package embed

import (
	"errors"

	"sublet/embed/rate"
	"sublet/vnet"
)

// Tenancy is one running lease as rate allocation sees it: the topology of
// its running stage and its mapping.
type Tenancy struct {
	Topology vnet.Topology
	Mapping  vnet.Mapping
}

// Demands lists what each link of a topology asks of the directed substrate
// elements it runs over: two demands per link, Forward then Reverse, in the
// topology's order.
func Demands(sub vnet.Substrate, topology vnet.Topology, mapping vnet.Mapping) ([]rate.Demand, error) {
	return nil, errors.New("embed: not reached")
}

// Rates allocates every directed element of the substrate among the running
// leases and gives each virtual link and Direction the smallest of its
// elements' rates; best effort gets 0. The result is by lease, then by link.
func Rates(sub vnet.Substrate, running []Tenancy) ([]map[string][2]vnet.Rate, error) {
	return nil, errors.New("embed: not reached")
}
