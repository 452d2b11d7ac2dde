package embed

import "sublet/vnet"

// Capacities lists what leases may book of each element of a substrate, by
// the keys and in the units of Bookings.
func Capacities(sub vnet.Substrate) map[string]int64 {
	return inventoryOf(sub).byKey()
}

// byKey lists the capacities by key.
func (r *inventory) byKey() map[string]int64 {
	capacities := make(map[string]int64, len(r.keys))
	for i, key := range r.keys {
		capacities[key] = r.capacities[i]
	}
	return capacities
}
