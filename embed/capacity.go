package embed

import (
	"sublet/embed/graph"
	"sublet/vnet"
)

// Capacities lists what leases may book of each element of a substrate, by
// the keys and in the units of Bookings.
func Capacities(sub vnet.Substrate) map[string]int64 {
	r := &resources{sub: sub}
	count := r.arc(graph.ArcOf(len(sub.Links), vnet.Forward))
	capacities := make(map[string]int64, count)
	for i := resource(0); i < count; i++ {
		capacities[r.key(i)] = r.capacity(i)
	}
	return capacities
}
