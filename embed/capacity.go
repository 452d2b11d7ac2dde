package embed

import "sublet/vnet"

// Capacities lists what leases may book of each element of a substrate, by
// the keys and in the units of Bookings.
func Capacities(sub vnet.Substrate) map[string]int64 {
	r := &resources{sub: sub}
	capacities := make(map[string]int64, r.count())
	for i := resource(0); i < r.count(); i++ {
		capacities[r.key(i)] = r.capacity(i)
	}
	return capacities
}
