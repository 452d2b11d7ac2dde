package emulate

import (
	"slices"
	"testing"

	"sublet/fabric/spread"
	"sublet/vnet/topology"
)

// A damage hits what somebody's packets cross, and spares switches with hosts
// where it can.
func TestDamageHitsWhatIsUsed(t *testing.T) {
	for _, c := range []struct {
		name   string
		middle bool // there are switches without hosts between the senders
	}{{"jellyfish:6,4,4,2", true}, {"fat-tree:4", true}, {"jellyfish:10,4,10,1", false}} {
		sub, _, err := topology.Named(c.name)
		if err != nil {
			t.Fatal(err)
		}
		model, err := spread.NewFabric(sub)
		if err != nil {
			t.Fatal(err)
		}
		f := &Fabric{sub: sub, model: model}
		targets := make([]int, len(sub.Hosts))
		for x := range targets {
			targets[x] = (x + 2) % len(targets)
		}
		links, element, err := f.target("cut", targets)
		if err != nil || len(links) != 1 || sub.Links[links[0]].Name != element || f.crossed(targets)[links[0]] == 0 {
			t.Errorf("%s: cut %s, %v: %v", c.name, element, links, err)
		}
		links, element, err = f.target("switch", targets)
		if err != nil || !slices.Contains(sub.Switches, element) || len(links) < 2 || c.middle && f.hostsAt()[element] != 0 {
			t.Errorf("%s: switch %s, %v: %v", c.name, element, links, err)
		}
		alone := make([]int, len(sub.Hosts)) // all send to themselves
		for x := range alone {
			alone[x] = x
		}
		if _, _, err := f.target("cut", alone); err == nil {
			t.Errorf("%s: a link is cut that nobody uses", c.name)
		}
	}
}
