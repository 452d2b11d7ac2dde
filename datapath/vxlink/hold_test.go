package vxlink

import (
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// TestHoldIsOfAllPaths: the wire of a link over several paths has room for the
// frames of all.
func TestHoldIsOfAllPaths(t *testing.T) {
	link := func(rate vnet.Rate, units int) int {
		return hold(plan.VxLink{Units: units, Ends: [2]plan.End{{Impair: vnet.Impairment{Delay: time.Second}}, {Rate: rate}}}, 0)
	}
	if whole, quarter := link(80*vnet.Mbit, 0), link(20*vnet.Mbit, vnet.ShareUnits/4); whole != leastHold+20_000_000 || quarter != whole {
		t.Errorf("%d bytes of a path, %d of a quarter of them", whole, quarter)
	}
}
