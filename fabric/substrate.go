package fabric

import "sublet/vnet"

// FabricOf is the switches of a substrate, numbered as it lists them, and the
// links between them by their indexes there, all of cost 1, as Substrate.Relays
// promises. Links that are down count too: where others go, what was the only
// shortest path stays the only one, so a list holds while its path does. Links
// that join a switch to itself, which Substrate.Check refuses, are left out.
func FabricOf(sub vnet.Substrate) *Fabric {
	number := make(map[string]int, len(sub.Switches))
	for i, name := range sub.Switches {
		number[name] = i
	}
	f := NewFabric(len(sub.Switches))
	for i, l := range sub.Links {
		a, isSwitch := number[l.Ends[0]]
		b, too := number[l.Ends[1]]
		if isSwitch && too && a != b {
			_ = f.Join(a, b, 1, i) // both are there, and differ
		}
	}
	return f
}

// Only says whether there is one shortest path between two switches and no
// second, and what it costs.
func (f *Fabric) Only(from, to int) (cost int, only bool) {
	d := f.distancesTo(to)
	return int(d.dist[from]), d.paths[from] == 1
}
