package controller_test

import (
	"testing"

	"sublet/openflow/controller"
)

// Paths lead over the links that cost least, and move when prices do; links of which
// nothing is said cost a hop, so that paths are the shortest again without prices.
func TestPathsFollowPrices(t *testing.T) {
	t.Parallel()
	c := newControlled(t, "OpenFlow13", nil)
	c.links(3)
	c.comes(1, 2, 1)
	c.comes(2, 1, 2)
	c.comes(1, 2, 4) // both are known now
	c.has([4]int{0, 2, 2, 0})
	toTwo := controller.Outlet{DatapathID: 1, Port: 3}
	c.network.SetPrices(map[controller.Outlet]uint32{toTwo: 2*controller.Hop + 1})
	c.has([4]int{0, 2, 2, 1}) // one direction only
	c.comes(1, 2, 3)
	c.network.SetPrices(map[controller.Outlet]uint32{toTwo: 2 * controller.Hop})
	c.has([4]int{0, 2, 2, 0}) // of two that cost as much the lower numbers
	c.network.SetPrices(map[controller.Outlet]uint32{toTwo: 10 * controller.Hop})
	c.has([4]int{0, 2, 2, 1})
	c.network.SetPrices(nil)
	c.has([4]int{0, 2, 2, 0})
}
